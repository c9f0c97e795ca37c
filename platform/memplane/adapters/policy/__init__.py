"""YAML policy files to domain policy."""

from memplane.adapters.policy.loading import KNOWN_FILES, digest_of, load_policy, shipped_policies
from memplane.adapters.policy.reloading import PolicyFiles

__all__ = ["KNOWN_FILES", "PolicyFiles", "digest_of", "load_policy", "shipped_policies"]

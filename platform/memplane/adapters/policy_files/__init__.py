"""YAML policy files to domain policy."""

from memplane.adapters.policy_files.loading import KNOWN_FILES, digest_of, load_policy, shipped_policies
from memplane.adapters.policy_files.reloading import PolicyFiles

__all__ = ["KNOWN_FILES", "PolicyFiles", "digest_of", "load_policy", "shipped_policies"]

"""Proposals for sensitive fields of profiles, and decisions on them."""

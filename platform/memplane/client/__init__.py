"""A Python client that speaks the contracts."""

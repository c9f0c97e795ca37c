"""Further ways to find personal data, beside the patterns of the domain."""

"""API keys, tokens of an issuer, and their administration."""

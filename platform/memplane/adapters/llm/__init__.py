"""The language model of the operator's settings."""

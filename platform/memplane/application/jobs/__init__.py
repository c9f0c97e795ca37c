"""Background use cases."""

"""The embedded PostgreSQL of `memplane serve`."""

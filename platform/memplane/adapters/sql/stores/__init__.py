"""What one write transaction reads and writes, by store."""

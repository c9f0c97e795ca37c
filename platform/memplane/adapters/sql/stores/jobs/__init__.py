"""What scheduled jobs read and write within a transaction."""

"""Ways in: HTTP and the command line."""

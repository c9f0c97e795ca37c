"""Commands that speak HTTP to a server."""

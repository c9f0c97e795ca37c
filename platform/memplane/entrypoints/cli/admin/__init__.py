"""Commands that work on the database itself, on the machine of the server."""

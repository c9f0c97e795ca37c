"""The wire vocabulary shared by HTTP, MCP and the client."""

"""Tables, columns and types of the schema, and its migrations."""

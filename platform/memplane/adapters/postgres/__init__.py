"""PostgreSQL: engine, embedded server, search, row-level security."""

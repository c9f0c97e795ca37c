"""SQLite: engine, search and its cache, for one person and one file."""

"""A tenant's data copied from one kind of database to the other."""

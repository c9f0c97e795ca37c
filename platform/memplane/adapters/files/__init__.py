"""Files that the service keeps beside a database."""

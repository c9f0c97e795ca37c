"""What connects the use cases to databases, models and files."""

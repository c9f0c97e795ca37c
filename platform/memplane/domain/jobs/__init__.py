"""Background work: job definitions, and the rules of what a job may conclude."""

"""Which fields of a profile need a person's consent, and what counts as consent."""

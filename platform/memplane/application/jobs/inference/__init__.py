"""Jobs that ask a language model, within a budget."""

"""Who finds names in texts when there is time for it: rules, a spaCy model, the language model."""

"""What texts say: terms, languages, entities, statements of facts, and whether two texts agree."""

"""Taking back what one writer wrote, changed and decided."""

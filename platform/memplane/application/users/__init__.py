"""Users: their settings, and merging one into another."""

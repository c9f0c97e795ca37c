"""`memplane demo`: a small story, told on a throw-away server."""

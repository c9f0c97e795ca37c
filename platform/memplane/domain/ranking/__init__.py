"""How units are scored, selected and rendered for an answer."""

"""Erasing a user, with a receipt, and keeping the user erased."""

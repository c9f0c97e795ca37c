"""Turns of conversations: stored, extracted from, summed up, deleted."""

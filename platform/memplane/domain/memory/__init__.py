"""Memories: what they are, their history and lifecycle, and what a new one does to those that exist."""

"""Memories: written through one gateway, changed, listed and explained."""

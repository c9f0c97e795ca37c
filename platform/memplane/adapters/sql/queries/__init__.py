"""Statements written by hand, and the reads that use them."""

"""Use cases: one module for each thing a caller can ask for."""

"""Checkpoints of graphs and the state of supervisors."""

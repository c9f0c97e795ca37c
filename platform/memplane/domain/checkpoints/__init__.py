"""Checkpoints of graphs: their lineage, and the state of supervisors."""

"""Text embedding models."""

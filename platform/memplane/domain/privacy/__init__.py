"""Personal data, erasure, and the audit chain."""

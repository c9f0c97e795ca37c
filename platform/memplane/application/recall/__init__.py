"""The reads that rank: `memory.query`, the context call, and what changed in a thread."""

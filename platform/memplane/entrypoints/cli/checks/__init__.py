"""What `memplane doctor` checks."""

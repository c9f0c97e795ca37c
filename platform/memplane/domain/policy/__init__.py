"""What the policy says, as frozen values."""

"""What operators look at: statistics, events, the policy in force, the audit chain."""

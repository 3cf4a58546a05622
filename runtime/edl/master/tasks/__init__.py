"""Tasks under leases: assignment, recovery and progress."""

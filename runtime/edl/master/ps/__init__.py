"""Parameter servers as the master manages them: roles, recovery and checkpoints."""

"""What people read of statements, at a command line and in a notebook: rows, progress, and the last words."""

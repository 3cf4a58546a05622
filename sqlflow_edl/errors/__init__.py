"""Error positions in the user's text, and rendering of errors."""

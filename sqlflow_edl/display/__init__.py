"""Output for people, at a command line and in a notebook: result sets, progress and final reports."""

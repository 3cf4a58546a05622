"""Commands for jobs: lists, details, logs, following, resuming and cancelling."""

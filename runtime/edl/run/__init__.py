"""Processes that run jobs: the training process with its client, and the `edl` command. Light to import."""

"""Execution of one job: the training process with its client, and the job's inputs and outputs. Light to import."""

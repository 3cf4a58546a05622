"""Logs of a job's pods."""

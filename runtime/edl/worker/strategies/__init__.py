"""Gradient strategies: local, parameter servers (async, sync) and all-reduce."""

"""Trained models in memory: SQL functions of a caller's connection, and the server of `sqlflow serve`."""

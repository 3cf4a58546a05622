"""Sample tables to learn with."""

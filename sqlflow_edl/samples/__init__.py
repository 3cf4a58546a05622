"""Sample tables to learn on."""

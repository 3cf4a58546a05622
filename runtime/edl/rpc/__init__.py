"""Remote procedure calls: the stubs that `make stubs` generates from `proto/`, channels, and messages."""

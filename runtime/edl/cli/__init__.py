"""The `edl` command: train, evaluate and predict without SQL."""

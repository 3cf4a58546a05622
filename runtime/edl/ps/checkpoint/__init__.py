"""Checkpoints of parameter servers: snapshots, shard files, manifest and replication."""

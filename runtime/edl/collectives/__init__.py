"""Collective operations of a group of processes: all-reduce, broadcast, barrier."""

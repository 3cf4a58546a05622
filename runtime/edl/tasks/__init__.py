"""Tasks: ranges of rows that are assigned, acknowledged and repeated; the job's state machine, its events and outcome.

Light to import: workers, the master and clients share these types.
"""

"""Tasks: how a job is cut into ranges of rows, handed out, acknowledged and repeated; what it tells, and how it ends.

Light to import: workers, the master and clients all speak of these things.
"""

"""A job on Kubernetes: what its master asks of the API server, and what client and master both know of a job there.

The client makes a Job whose pod is the master; the master makes the pods of workers and parameter servers.
"""

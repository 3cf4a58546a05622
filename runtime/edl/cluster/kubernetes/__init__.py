"""Jobs on Kubernetes: calls of a master to the API server, and the deployment that client and master share.

The client creates a Job with the master as its pod; the master creates the pods of workers and parameter servers.
"""

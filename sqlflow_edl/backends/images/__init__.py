"""Images for jobs on Kubernetes: built, packed into an archive, and asked for their build in a registry."""

"""Jobs on Kubernetes from the client's side: settings, the objects of a job, and their submission."""

"""Jobs on Kubernetes, as their client sees them: settings, the objects of a job, and how they get into the cluster."""

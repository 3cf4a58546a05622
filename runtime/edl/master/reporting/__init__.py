"""Status of a job: events, snapshot, Prometheus metrics and TensorBoard files."""

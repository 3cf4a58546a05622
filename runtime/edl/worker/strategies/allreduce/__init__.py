"""All-reduce training: rendezvous, the shared task log, state transfer and stragglers."""

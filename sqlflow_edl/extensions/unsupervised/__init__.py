"""Models that learn without a label: clusters and anomalies."""

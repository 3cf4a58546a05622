"""BigQuery ML: its statements as ours, and the rows of its functions."""

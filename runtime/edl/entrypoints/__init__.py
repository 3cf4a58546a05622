"""Entry points of the processes and containers of a job."""

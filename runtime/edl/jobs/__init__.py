"""Job folders, and the event log, snapshot and outcome that a job writes there."""

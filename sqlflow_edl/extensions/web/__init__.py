"""Web pages about jobs and models: `sqlflow ui` and `sqlflow report`."""

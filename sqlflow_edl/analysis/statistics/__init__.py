"""Statistics of the training rows, on which features are fitted."""

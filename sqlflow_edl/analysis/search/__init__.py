"""Search for a model, which the short form of TRAIN names none: candidates, budget and plan."""

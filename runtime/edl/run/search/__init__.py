"""Search for the best ensemble of candidate models: trials, and the selection among them. Light to import."""

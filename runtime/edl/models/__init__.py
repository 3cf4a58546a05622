"""Trained models: archives, and the registry in the data source that keeps them. No part of them is ever executed."""

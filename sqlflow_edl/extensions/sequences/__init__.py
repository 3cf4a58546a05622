"""Models that read ids in their order."""

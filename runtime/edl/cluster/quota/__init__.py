"""Slots that the jobs of one machine share."""

"""Kubernetes objects of a job."""

"""Backends that run jobs: a process, several processes, or Kubernetes."""

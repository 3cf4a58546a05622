"""Stands where PyTorch would be, so that a forkserver is ready at once."""

raise ImportError("this stage has no PyTorch")

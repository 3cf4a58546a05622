"""Stands where PyTorch would be, so that a zygote is ready at once."""

raise ImportError("this stage has no PyTorch")

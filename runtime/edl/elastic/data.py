"""Sampler and loader of PyTorch with a state: the public names of `edl.extensions.elastic.torch_loader`."""

from edl.extension_loader import name_absence

with name_absence("edl.extensions.elastic"):
    from edl.extensions.elastic.torch_loader import DataLoader, DistributedSampler

__all__ = ["DataLoader", "DistributedSampler"]

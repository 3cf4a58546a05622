"""PyTorch behind the contract of `edl.frameworks.adapter`."""

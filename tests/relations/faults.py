"""Mended faults that are put back into the product, each beside the relations that must find it.

`python -m tests.relations --put-back` puts each back in turn. Training processes are children that import this module
by `faults/sitecustomize.py`, because a fault may lie in what they run.
"""

"""Stands where PyArrow would be, which a forkserver makes ready for workers: it takes as long as all else of it."""

raise ImportError("this stage has no PyArrow")

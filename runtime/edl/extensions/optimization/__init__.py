"""Optimization problems over rows: their matrices, and HiGHS, which solves them."""

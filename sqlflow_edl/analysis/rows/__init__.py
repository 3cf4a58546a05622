"""Rows of a training: which are held out, what each weighs, and how they are grouped."""

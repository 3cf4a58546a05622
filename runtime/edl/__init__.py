"""The runtime: what generated programs import and what instances run. Importing it loads no framework."""

from edl.callbacks import Callback, Control

__all__ = ["Callback", "Control"]

"""Logger of a module: its lines are in the log of the process."""

from __future__ import annotations

import logging

default_logger = logging.getLogger("edl.zoo")

"""Ensemble for generated programs, defined in `edl.frameworks.ensemble`."""

from __future__ import annotations

from edl.frameworks.ensemble import Ensemble

__all__ = ["Ensemble"]

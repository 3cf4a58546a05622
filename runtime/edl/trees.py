"""Models of boosted trees for generated programs, defined in `edl.frameworks.trees.models`."""

from __future__ import annotations

from edl.frameworks.trees.models import LightGBM, XGBoost

__all__ = ["LightGBM", "XGBoost"]

"""All relations, once the modules that hold them are imported."""

from tests.relations import measuring, planning, predicting, running, showing, training
from tests.relations.registry import RELATIONS

MODULES = (showing, planning, predicting, measuring, training, running)

__all__ = ["MODULES", "RELATIONS"]

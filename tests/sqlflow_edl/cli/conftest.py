"""A stage for the commands on jobs: see `tests.edl.cluster.conftest`."""

from tests.edl.cluster.conftest import stage, theatre

__all__ = ["stage", "theatre"]

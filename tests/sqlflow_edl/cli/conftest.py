"""A stage for the commands on jobs: see `tests.edl.cluster.local.conftest`."""

from tests.edl.cluster.local.conftest import stage, theatre

__all__ = ["stage", "theatre"]

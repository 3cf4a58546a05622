"""Fixtures of the tests of sources, for those that extensions add."""

from tests.edl.sources.conftest import passwords

__all__ = ["passwords"]

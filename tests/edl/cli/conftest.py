"""The training process of the session, for the tests of commands."""

from tests.edl.run.conftest import process

__all__ = ["process"]

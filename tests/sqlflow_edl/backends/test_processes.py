"""How a job runs as processes of this machine."""

from __future__ import annotations

import pytest

from edl.errors import SpecError
from sqlflow_edl.backends.submit import make_run_spec
from tests.sqlflow_edl.backends.kubernetes.jobs import with_workers


def test_a_wrong_variable_is_an_error_before_any_process_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDL_UNREACHABLE_SECS", "soon")
    with pytest.raises(SpecError, match="EDL_UNREACHABLE_SECS is 'soon', not a number of seconds"):
        make_run_spec(with_workers(2), None)

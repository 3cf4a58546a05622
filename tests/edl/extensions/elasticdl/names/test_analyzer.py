"""Statistics from the environment, or the module's own."""

from __future__ import annotations

import pytest

from edl.extensions.elasticdl.names import analyzer


def test_the_environment_comes_before_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert analyzer.get_min("age", 3) == 3.0
    assert analyzer.get_bucket_boundaries("age", [1.0]) == [1.0]
    for name, value in {"min": "1.5", "boundaries": "3,1,3", "distinct_count": "8", "vocab": "/v"}.items():
        monkeypatch.setenv(f"_age_{name}", value)
    assert analyzer.get_min("age", 3) == 1.5
    assert analyzer.get_bucket_boundaries("age", [1.0]) == [1.0, 3.0]
    assert analyzer.get_distinct_count("age", 1) == 8
    assert analyzer.get_vocabulary("age", ["a"]) == "/v"


def test_a_model_tells_its_inputs() -> None:
    @analyzer.declare_model_inputs("wide", "deep")
    class Model:
        pass

    assert Model._model_inputs == ["wide", "deep"]  # type: ignore[attr-defined]

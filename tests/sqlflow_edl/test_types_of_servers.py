"""Types that only a server has are left out of features with a note, and carried along by PREDICT."""

from __future__ import annotations

from pathlib import Path

import pytest

import sqlflow_edl
from edl.errors import SourceError
from tests.databases import Databases

PROGRAMS = Path(__file__).parents[1] / "fixtures" / "reported"
LEFT_OUT = "{} is left out: it is of the type {}, which models cannot read; select {}".format
NOTES = {
    "postgres": [
        LEFT_OUT("stay", "interval", 'EXTRACT(epoch FROM "stay") AS "stay"'),
        LEFT_OUT("paid", "money", '"paid"::numeric AS "paid"'),
        LEFT_OUT("facts", "hstore", '"facts"::text AS "facts"'),
        LEFT_OUT("span", "int4range", '"span"::text AS "span"'),
    ],
    "mysql": [LEFT_OUT("place", "GEOMETRY", "ST_AsText(`place`) AS `place`")],
}
VALUES = {"postgres": ["stay", "paid", "facts", "span"], "mysql": ["place"]}
UNFIT = {"postgres": "column until holds 'infinity'", "mysql": "column until holds '0000-00-00'"}


@pytest.mark.parametrize("dialect", NOTES)
def test_columns_that_no_feature_can_use_are_left_out_with_a_note(
    databases: Databases, dialect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with sqlflow_edl.connect(databases.url(dialect)) as session:
        results = session.stream((PROGRAMS / f"types_of_{dialect}.sql").read_text(encoding="utf-8"))
        trained = next(each for each in results if each.model)
        assert list(trained.notes) == NOTES[dialect]
        evaluated = next(results)
        assert evaluated.to_arrow().num_rows == 1
        assert next(results).rows == 200
        [guess] = session.run("SELECT * FROM guesses")
        assert guess.to_arrow().schema.names == ["x", *VALUES[dialect], "y"]
        with pytest.raises(SourceError, match=UNFIT[dialect]):
            next(results)

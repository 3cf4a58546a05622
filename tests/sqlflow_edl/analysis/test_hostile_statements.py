"""Any text of a statement, and any value of an attribute, ends in a result or in errors with a place."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from edl.errors import ErrorList, SQLFlowError
from sqlflow_edl.analysis import inference, train
from sqlflow_edl.analysis.catalog import MODELS, OPTIMIZERS, SCHEDULES
from sqlflow_edl.analysis.losses import LOSSES
from sqlflow_edl.analysis.settings.attributes import BY_VERB
from sqlflow_edl.analysis.settings.kubernetes import KUBERNETES
from sqlflow_edl.errors.render import render
from sqlflow_edl.syntax import parse
from sqlflow_edl.syntax.lexer import quoted_string
from tests.texts import texts

_ROWS = (
    *(row for rows in BY_VERB.values() for row in rows),
    *KUBERNETES,
    *(
        row
        for each in (MODELS, OPTIMIZERS, SCHEDULES, LOSSES)
        for entry in each.entries.values()
        for row in entry.params
    ),
)
NAMES = sorted(
    {name for row in _ROWS for name in (row.name, *row.aliases)} | {"nosuch", "train.nosuch", "dist_strategy"}
)
_SIMPLE = st.one_of(
    st.sampled_from(
        ("a", "x.y", "TRUE", "NULL", "f(x)", "''", "-0", "1e308", "9" * 310, "{{ x }}", "[", "{")
    ),
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(str),
    texts(max_size=5).map(quoted_string),
)
VALUES = st.recursive(
    _SIMPLE,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.lists(inner, max_size=2).map(
            lambda items: "{" + ", ".join(f"k{i}: {v}" for i, v in enumerate(items)) + "}"
        ),
    ),
    max_leaves=4,
)
VERBS = st.sampled_from(
    (
        *(
            f"TO TRAIN {model} WITH {{}} LABEL y INTO m"
            for model in ("DNNClassifier", "DeepFM", "DNNClasifier", "KMeans", "no.Model")
        ),
        "TO PREDICT t.y WITH {} USING m",
        "TO EVALUATE m WITH {}",
        "TO EXPLAIN m WITH {}",
    )
)


def checked(text: str) -> None:
    """Check the statements of the text as far as that needs no data source; their errors have places."""
    try:
        for statement in parse(text):
            if statement.kind in ("train", "auto"):
                train.check_without_columns(statement)
            elif statement.kind in inference.USES:
                inference.USES[statement.kind][0](statement)
    except SQLFlowError as error:
        errors = error.errors if isinstance(error, ErrorList) else (error,)
        assert all(each.span for each in errors), [each.message for each in errors]
        assert render(error, text)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(NAMES), VALUES, VERBS)
def test_any_value_of_an_attribute_ends_in_a_result_or_an_error_with_a_place(
    name: str, value: str, verb: str
) -> None:
    checked("SELECT 1 AS y " + verb.replace("{}", f"{name} = {value}"))


_PIECES = st.sampled_from(
    (
        *(
            "SELECT 1 ",
            "TO TRAIN ",
            "DNNClassifier ",
            "WITH ",
            "COLUMN ",
            "LABEL y ",
            "VALIDATE ",
            "USING m ",
            "INTO m ",
        ),
        *(
            "[",
            "]",
            "(",
            ")",
            "{",
            "}",
            "{{ x }}",
            "= ",
            ", ",
            "'",
            '"',
            "`",
            "/*",
            "-- c\n",
            "; ",
            "1e999 ",
            "年",
        ),
        *(
            "train.epoch ",
            "BUCKETIZE(y, 3) ",
            "AS e ",
            "FOR wide ",
            "CREATE TABLE t AS ",
            "CREATE MODEL m ",
            "SHOW MODLES ",
        ),
        *("\0", "\udcff", "\\"),
    )
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(_PIECES, texts(max_size=4)), max_size=14))
def test_any_text_ends_in_statements_or_an_error_with_a_place(pieces: list[str]) -> None:
    checked("".join(pieces))

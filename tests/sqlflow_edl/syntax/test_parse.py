"""From the text of a program to its statements."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl.errors import ErrorList, SemanticError, SQLFlowError, StatementSyntaxError
from sqlflow_edl.syntax import is_complete, parse
from sqlflow_edl.syntax.ast import Call, Constant, Name
from sqlflow_edl.syntax.dialects import DIALECTS
from sqlflow_edl.syntax.lexer import quoted_name, quoted_string, sql_tokens
from tests.sql_cases import cases, corpus
from tests.texts import texts

PROGRAMS = sorted({case.program for case in (*cases("syntax/statements.sql"), *cases("syntax/errors.sql"))})

HOSTILE = [
    'x"); import os #',
    "x'); import os #",
    "type",
    "a.b",
    "a/b",
    "x" * 300,
    'say "yes"',
    "it's",
    "a`b",
    "line\nbreak",
    "carriage\rreturn",
    "{{ 7 * 7 }}{% raw %}",
    "\\",
    "back\\slash",
    "TO TRAIN",
    "; DROP TABLE t; --",
    "/* */",
    "[x]",
    "年龄 🙂",
    " ",
    "\u2028",
]

INSERTED = ("", "TRAIN ", "TO ", "LABEL ", ", ", "'", '"', "(", "]", "{", ";", "/*", "--", "=", "1e9", ".")

# ---------------------------------------------------------------------------------------------- corpus

# Statements that SQLFlow refused for their syntax and that are errors here too, by their line in the corpus.
STILL_ERRORS = {11, 12, 17, 24, 107, 119, 142, 168, 197, 276, 278, 285, 289, 292, 293}


@pytest.mark.variants(3)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_sqlflow_accepts_parses_to_its_kind_with_its_select(dialect: str) -> None:
    for statement in corpus():
        if statement.stage == "syntax":
            continue
        extended = [each for each in parse(statement.sql, dialect) if each.kind != "sql"]

        assert [each.kind for each in extended] == [statement.kind], statement
        assert extended[0].select in statement.sql
        before = statement.sql[: statement.sql.index(extended[0].text)]
        after_select = extended[0].text[len(extended[0].select) :].lstrip().upper()
        tokens = [token for token in sql_tokens(before, 0, DIALECTS[dialect]) if token.kind != "comment"]
        assert not tokens or tokens[-1].kind == "semicolon"
        assert after_select.startswith(("TO ", "TRAIN ", "PREDICT ", "ANALYZE ", "SHOW "))


def test_what_sqlflow_refuses_is_valid_now_or_an_error_with_place_and_hint() -> None:
    refused = [statement for statement in corpus() if statement.stage == "syntax"]
    errors = {}
    for statement in refused:
        try:
            parse(statement.sql)
        except SQLFlowError as error:
            errors[statement.number] = error

    assert set(errors) == STILL_ERRORS
    assert all(error.span and error.hint for error in errors.values())


# ----------------------------------------------------------------------------------------------- names


def names(column: str, dialect: str) -> tuple[Name | Constant, Name | Constant, Name, Name]:
    """The column as an item, as an argument, as a label and as a model, when quoted in backticks."""
    quoted = quoted_name(column)
    text = f"SELECT 1 TO TRAIN m COLUMN {quoted}, f({quoted}, 8) LABEL {quoted} INTO {quoted}"
    (statement,) = parse(text, dialect)
    item, call = (item.value for item in statement.columns[0].items)
    assert isinstance(item, Name)
    assert isinstance(call, Call)
    assert isinstance(call.args[0], Name)
    return item, call.args[0], statement.labels[0], statement.into[0]


@pytest.mark.variants(40)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_a_hostile_name_survives_in_backticks(name: str, dialect: str) -> None:
    assert [each.parts for each in names(name, dialect) if isinstance(each, Name)] == [(name,)] * 4


@given(name=texts(), dialect=st.sampled_from(sorted(DIALECTS)))
def test_any_name_survives_in_backticks(name: str, dialect: str) -> None:
    assert [each.parts for each in names(name, dialect) if isinstance(each, Name)] == [(name,)] * 4


@pytest.mark.variants(40)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_a_hostile_name_survives_as_a_text(name: str, dialect: str) -> None:
    string = quoted_string(name)
    (statement,) = parse(f"SELECT 1 TO TRAIN m COLUMN {string}, f({string}) WITH a={string}", dialect)
    item, call = (item.value for item in statement.columns[0].items)
    assert isinstance(call, Call)

    for value in (item, call.args[0], statement.attributes[0].value):
        assert isinstance(value, Constant)
        assert value.value == name


@pytest.mark.parametrize("name", [name for name in HOSTILE if "\\" not in name], ids=ascii)
@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "sqlite"])
def test_a_hostile_name_survives_in_double_quotes(name: str, dialect: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    (statement,) = parse(f"SELECT {quoted} FROM t TO TRAIN m LABEL {quoted} INTO {quoted}", dialect)

    assert statement.select == f"SELECT {quoted} FROM t"
    assert statement.labels[0].parts == statement.into[0].parts == (name,)


# ------------------------------------------------------------------------------------------ robustness


def parses_or_says_why(text: str, dialect: str) -> None:
    try:
        statements = parse(text, dialect)
    except SQLFlowError as error:
        assert error.message
        for each in getattr(error, "errors", (error,)):
            assert each.span is not None
            assert 0 <= each.span.start <= each.span.end <= len(text)
        return
    for statement in statements:
        assert text[statement.span.start : statement.span.end] == statement.text
        assert statement.select_span is None or (
            text[statement.select_span.start : statement.select_span.end] == statement.select
        )


@given(text=texts(), dialect=st.sampled_from(sorted(DIALECTS)))
def test_arbitrary_text_parses_or_is_a_syntax_error(text: str, dialect: str) -> None:
    parses_or_says_why(text, dialect)
    is_complete(text, dialect)


@given(data=st.data(), dialect=st.sampled_from(sorted(DIALECTS)))
def test_a_mutated_program_parses_or_is_a_syntax_error(data: st.DataObject, dialect: str) -> None:
    program = data.draw(st.sampled_from(PROGRAMS))
    start = data.draw(st.integers(0, len(program)))
    end = data.draw(st.integers(start, min(len(program), start + 12)))
    inserted = data.draw(st.one_of(st.sampled_from(INSERTED), texts(max_size=4)))

    parses_or_says_why(program[:start] + inserted + program[end:], dialect)


@pytest.mark.soak
@pytest.mark.parametrize(
    "text",
    ["(" * 50_000, "SELECT " + "(" * 3_000 + " TO TRAIN m", "SELECT 1 TO TRAIN m COLUMN " + "f(" * 5_000],
)
def test_deep_nesting_is_no_internal_error(text: str) -> None:
    parses_or_says_why(text, "duckdb")


# -------------------------------------------------------------------------------------------- programs


def test_several_errors_of_a_program_are_reported_at_once() -> None:
    with pytest.raises(ErrorList) as caught:
        parse("SELECT 1 TO TRAIN; SELECT 2 TO TRAIN m LABEL a LABEL b LABEL c; SELECT 3")

    assert [error.message for error in caught.value.errors] == [
        "unexpected end of the statement after TRAIN",
        "LABEL is given twice",
        "LABEL is given twice",
    ]


def test_one_error_is_raised_as_itself() -> None:
    with pytest.raises(StatementSyntaxError) as caught:
        parse("SELECT 0; SELECT 1 TO TRAIN")

    assert caught.value.code == "syntax"


def test_a_select_that_sqlglot_cannot_read_is_a_warning() -> None:
    (statement,) = parse("SELECT a FRM t WHRE b LIMIT 3 TO TRAIN m")

    assert statement.select == "SELECT a FRM t WHRE b LIMIT 3"
    assert len(statement.warnings) == 1
    assert "the database decides" in statement.warnings[0]


def test_a_select_that_sqlglot_cannot_read_trains_without_to_as_well() -> None:
    (statement,) = parse("SELECT a FRM t WHRE b LIMIT 3 TRAIN m LABEL c INTO d")

    assert statement.kind == "train"
    assert statement.warnings


def test_ordinary_sql_goes_through_unread() -> None:
    (statement,) = parse("  WIBBLE 1 WOBBLE ; ")

    assert (statement.kind, statement.text, statement.warnings) == ("sql", "WIBBLE 1 WOBBLE", ())


def test_an_unknown_dialect_is_an_error() -> None:
    with pytest.raises(SemanticError, match="unknown SQL dialect 'oracle'"):
        parse("SELECT 1", "oracle")


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", False),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; -- done\n", True),
        ("SELECT 1; SELECT", False),
        ("SELECT ';", False),
        ("SELECT 1 -- ;", False),
        ("SELECT 1 /* ;", False),
        ("SELECT 1; /* ;", False),
        ("SELECT $$ ;", False),
        ("SELECT 1 TO TRAIN m WITH a='b;", False),
        ("SELECT 1 TO TRAIN m WITH a='\\';';", True),
        ("SELECT 1 TO TRIAN oops;", True),
        ("SELECT 1\nTO TRAIN m\nLABEL", False),
        ("SHOW MODELS;", True),
        ("CREATE TRIGGER a AFTER INSERT ON t BEGIN SELECT 1;", False),
        (";", True),
    ],
)
def test_a_text_is_complete_when_a_semicolon_ends_it(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_the_console_can_ask_for_completeness_without_loading_sqlglot() -> None:
    program = (
        "import sys; from sqlflow_edl.syntax import is_complete; "
        "is_complete('SELECT 1 TO TRAIN m LABEL c;'); is_complete('SELECT 1 TRAIN m LABEL c INTO x;'); "
        "print(sorted({'sqlglot', 'duckdb', 'pyarrow', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


# --------------------------------------------------------------------------------- comments and odd characters


def test_a_comment_around_a_statement_belongs_neither_to_its_text_nor_to_its_place() -> None:
    text = "-- first\nSELECT 1; /* second */ SELECT 1 TO TRAIN m LABEL a INTO b -- end\n;"
    sql, train = parse(text)

    assert sql.text == "SELECT 1"
    assert train.text == "SELECT 1 TO TRAIN m LABEL a INTO b"
    assert [text[each.span.start : each.span.end] for each in (sql, train)] == [sql.text, train.text]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("SELECT 1; SELECT '\udcff'", 18),
        ("SELECT 1 TO TRAIN m LABEL a INTO \udcff", 33),
        ("SELECT \0", 7),
        ("SELECT '\0' TO TRAIN m LABEL a INTO b", 8),
    ],
)
def test_a_character_that_no_database_takes_is_an_error_at_its_place(text: str, place: int) -> None:
    with pytest.raises(StatementSyntaxError) as caught:
        parse(text)

    assert caught.value.span
    assert caught.value.span.start == place
    assert caught.value.hint


@pytest.mark.parametrize(
    "text", ["SET model = 1", "SET model.size = 1", "SET MODEL TO 'x'", "SET model := 1"]
)
def test_a_variable_of_the_database_may_be_called_model(text: str) -> None:
    assert [each.kind for each in parse(text)] == ["sql"]


@pytest.mark.parametrize(
    ("clauses", "target", "appends"),
    [
        ("scores.cost USING m APPEND", "scores.cost", True),
        ("scores append USING m", "scores", True),
        ("scores WITH predict.batch_size = 5, APPEND USING m", "scores", True),
        ("scores WITH predict.batch_size = 5, USING m, append", "scores", True),
        ("append USING m", "append", False),
        ("append.append USING m append", "append.append", True),
        ("scores USING append", "scores", False),
    ],
)
def test_append_adds_rows_to_a_table_and_is_a_name_too(clauses: str, target: str, appends: bool) -> None:
    [statement] = parse(f"SELECT * FROM t TO PREDICT {clauses}")
    assert (str(statement.target), statement.append is not None) == (target, appends)

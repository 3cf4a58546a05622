"""Forms of the extended statements and clauses, as /help and docs/language.md show them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StatementForm:
    """Form of a statement.

    doc: a remark next to it. example: a statement over the tables of `sqlflow samples`.
    """

    form: str
    doc: str = ""
    example: str = ""


_MODEL = "sqlflow_models.my_dnn_model"

STATEMENTS = {
    "TRAIN": StatementForm(
        "query [TO] TRAIN model [WITH attribute = value, …] [COLUMN item, …] [LABEL name, …] "
        "[VALIDATE fraction | ON (query)] [USING model_name] INTO model_name",
        "",
        f"SELECT * FROM iris TO TRAIN DNNClassifier WITH model.hidden_units = [10, 10] LABEL species INTO {_MODEL};",
    ),
    "PREDICT": StatementForm(
        "query [TO] PREDICT [target] [WITH …] USING model_name [APPEND]",
        "",
        f"SELECT * FROM iris TO PREDICT guesses.species USING {_MODEL};",
    ),
    "EVALUATE": StatementForm(
        "query TO EVALUATE model_name [WITH …] [LABEL name, …] [BY column, …] [INTO table]",
        "",
        f"SELECT * FROM iris TO EVALUATE {_MODEL};",
    ),
    "EVALUATE WITH": StatementForm(
        "query TO EVALUATE WITH evaluate.prediction = column, … LABEL name [INTO table]",
        "predictions in the rows, without a model",
        "SELECT species, species = 'setosa' AS truth, petal_length < 2.5 AS guess FROM iris "
        "TO EVALUATE WITH evaluate.prediction = guess LABEL truth;",
    ),
    "TO EXPLAIN": StatementForm(
        "query TO EXPLAIN model_name [WITH …] [INTO table]",
        "how much each column matters",
        f"SELECT * FROM iris TO EXPLAIN {_MODEL};",
    ),
    "TO RUN": StatementForm(
        'query TO RUN program.py [CMD "argument", …] [INTO table, …]',
        "a Python program of your own",
        'SELECT * FROM iris TO RUN samples/runnables/binning.py CMD "--columns=sepal_length" INTO lengths;',
    ),
    "TO MAXIMIZE": StatementForm(
        "query TO MAXIMIZE|MINIMIZE objective [CONSTRAINT condition, …] WITH variables = …, var_type = … "
        "[USING solver] [INTO table]",
        "a number for each row, under linear constraints",
        "SELECT species, count(*) AS flowers FROM iris GROUP BY species "
        "TO MAXIMIZE SUM(picked) CONSTRAINT picked <= flowers, SUM(picked) <= 60 "
        "WITH variables = 'picked(species)', var_type = NonNegativeIntegers;",
    ),
    "LABEL": StatementForm(
        "query LABEL name [WITH …] INTO model_name",
        "the short form: a search for the best models",
        f"SELECT * FROM iris LABEL species INTO {_MODEL};",
    ),
    "CREATE MODEL": StatementForm(
        "CREATE MODEL model_name OPTIONS(model_type = 'onnx', model_path = 'FILE', …)",
        "a model that was trained elsewhere",
        "CREATE MODEL churn OPTIONS(model_type = 'onnx', model_path = 'churn.onnx');",
    ),
    "EXPORT MODEL": StatementForm(
        "EXPORT MODEL model_name OPTIONS(uri = 'FILE')",
        "a file for use without this package, such as m.onnx",
        f"EXPORT MODEL {_MODEL} OPTIONS(uri = 'my_dnn_model.onnx');",
    ),
    "EXPLAIN": StatementForm(
        "EXPLAIN query TO …",
        "the plan: what would run, and why; nothing starts",
        f"EXPLAIN SELECT * FROM iris TO TRAIN DNNClassifier LABEL species INTO {_MODEL};",
    ),
    "SHOW MODELS": StatementForm(
        "SHOW MODELS [LIKE 'p%']",
        "every version, failed runs with their reason",
        "SHOW MODELS LIKE 'sqlflow%';",
    ),
    "SHOW TRAIN": StatementForm(
        "SHOW TRAIN model_name", "the statement that trained it", f"SHOW TRAIN {_MODEL};"
    ),
    "SHOW CURVE": StatementForm(
        "SHOW CURVE model_name", "losses and metrics by epoch", f"SHOW CURVE {_MODEL};"
    ),
    "SHOW TRIALS": StatementForm(
        "SHOW TRIALS model_name", "the trials of its search, and their statements", f"SHOW TRIALS {_MODEL};"
    ),
    "SHOW FEATURES": StatementForm(
        "SHOW FEATURES FOR model_name (query)",
        "what the model sees of rows",
        f"SHOW FEATURES FOR {_MODEL} (SELECT * FROM iris LIMIT 5);",
    ),
    "DESCRIBE MODEL": StatementForm(
        "DESCRIBE MODEL model_name",
        "features and why, statistics, metrics, learning curve, lineage",
        f"DESCRIBE MODEL {_MODEL};",
    ),
    "SET MODEL": StatementForm(
        "SET MODEL model_name ACTIVE version",
        "the version that the name means from now on",
        f"SET MODEL {_MODEL} ACTIVE 1;",
    ),
    "SET MODEL TAG": StatementForm(
        "SET MODEL model_name TAG tag version",
        "model_name@tag is that version from now on",
        f"SET MODEL {_MODEL} TAG production 1;",
    ),
    "ALTER MODEL": StatementForm(
        "ALTER MODEL [IF EXISTS] model_name RENAME TO new_name",
        "all versions and tags of it",
        f"ALTER MODEL {_MODEL} RENAME TO iris_model;",
    ),
    "ALTER MODEL SET OPTIONS": StatementForm(
        "ALTER MODEL [IF EXISTS] model_name SET OPTIONS(description = 'text', labels = [('key', 'value')], …)",
        "DESCRIBE MODEL shows them",
        f"ALTER MODEL {_MODEL} SET OPTIONS(description = 'species of flowers');",
    ),
    "DROP MODEL TAG": StatementForm(
        "DROP MODEL model_name TAG tag", "", f"DROP MODEL {_MODEL} TAG production;"
    ),
    "DROP MODEL": StatementForm("DROP MODEL [IF EXISTS] model_name", "", f"DROP MODEL IF EXISTS {_MODEL};"),
}
WIDTH = 42  # column in which a remark begins


def line(form: StatementForm) -> str:
    """Return the form with its remark, as an SQL comment."""
    return f"{form.form:{WIDTH - 1}} -- {form.doc}" if form.doc else form.form

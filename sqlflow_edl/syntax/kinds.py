"""Kinds of statements: one row for each, with all that several phases ask of a kind.

Functions that a phase has for each kind stand in a table of that phase; `tests/sqlflow_edl/test_kinds.py` compares
these tables with the kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from edl.jobs import job_folder

Kind = Literal[
    "sql",  # ordinary SQL, sent to the database unchanged
    "train",
    "auto",  # query LABEL … INTO …: the compiler chooses everything
    "import_model",  # CREATE MODEL of a file that was trained elsewhere
    "export_model",  # EXPORT MODEL: a stored model as a file
    "predict",
    "evaluate",
    "measure",  # EVALUATE of predictions in the rows, without a model
    "explain",  # a model's explanation: TO EXPLAIN, ANALYZE
    "optimize",
    "run",
    "show_models",
    "show_train",
    "show_curve",
    "show_trials",
    "show_metrics",  # ML.EVALUATE of a model alone
    "show_importances",  # ML.FEATURE_IMPORTANCE
    "show_columns",  # ML.FEATURE_INFO
    "show_weights",  # ML.WEIGHTS
    "show_centroids",  # ML.CENTROIDS
    "show_confusion",  # ML.CONFUSION_MATRIX of a model alone
    "show_roc_curve",  # ML.ROC_CURVE of a model alone
    "describe_model",
    "set_model",
    "set_tag",
    "set_facts",  # ALTER MODEL … SET OPTIONS
    "rename_model",  # ALTER MODEL … RENAME TO
    "drop_model",
    "drop_tag",
]


@dataclass(frozen=True, slots=True)
class Traits:
    """Traits of a kind of statement.

    title: with the fields of `analysis.programs.outline` in braces. job: kind of the job that does it, or None if
    there is none. generated: that job runs a generated program. uses: field of the stored model that it uses or
    changes. makes: its result, under the names of INTO, PREDICT or TAG. changes_model: a name of a model means another
    version afterwards, or none. final: it cannot be undone, so a console asks before it runs.
    """

    title: str
    job: job_folder.Kind | None = None
    generated: bool = False
    uses: Literal["model", "using", ""] = ""
    makes: Literal["model", "table", "tag", ""] = ""
    changes_model: bool = False
    final: bool = False


TRAITS: Mapping[Kind, Traits] = {
    "sql": Traits(""),
    "train": Traits("TRAIN {model} INTO {into}", "train", generated=True, uses="using", makes="model"),
    "auto": Traits("TRAIN INTO {into}", "train", generated=True, uses="using", makes="model"),
    "import_model": Traits("IMPORT {into}", makes="model", changes_model=True),
    "export_model": Traits("EXPORT {model}", uses="model"),
    "predict": Traits(
        "PREDICT {target} USING {using} {append}", "predict", generated=True, uses="using", makes="table"
    ),
    "evaluate": Traits("EVALUATE {model}", "evaluate", generated=True, uses="model", makes="table"),
    "measure": Traits("EVALUATE LABEL {labels}", "evaluate", makes="table"),
    "explain": Traits("EXPLAIN {model}", "explain", generated=True, uses="model", makes="table"),
    "optimize": Traits("{direction} {result}", "optimize", makes="table"),
    "run": Traits("RUN {image}", "run", makes="table"),
    "show_models": Traits("SHOW MODELS"),
    "show_train": Traits("SHOW TRAIN {model}", uses="model"),
    "show_curve": Traits("SHOW CURVE {model}", uses="model"),
    "show_trials": Traits("SHOW TRIALS {model}", uses="model"),
    "show_metrics": Traits("EVALUATE {model}", uses="model"),
    "show_importances": Traits("FEATURE_IMPORTANCE {model}", uses="model"),
    "show_columns": Traits("FEATURE_INFO {model}", uses="model"),
    "show_weights": Traits("WEIGHTS {model}", uses="model"),
    "show_centroids": Traits("CENTROIDS {model}", uses="model"),
    "show_confusion": Traits("CONFUSION_MATRIX {model}", uses="model"),
    "show_roc_curve": Traits("ROC_CURVE {model}", uses="model"),
    "describe_model": Traits("DESCRIBE MODEL {model}", uses="model"),
    "set_model": Traits("SET MODEL {name} ACTIVE {version}", uses="model", changes_model=True),
    "set_tag": Traits("SET MODEL {name} TAG {tag} {version}", uses="model", makes="tag", changes_model=True),
    "set_facts": Traits("SET OPTIONS {model}", uses="model"),
    "rename_model": Traits("RENAME {model} TO {into}", uses="model", makes="model", changes_model=True),
    "drop_model": Traits("DROP MODEL {model}", uses="model", changes_model=True, final=True),
    "drop_tag": Traits("DROP MODEL {model} TAG {tag}", uses="model", changes_model=True),
}

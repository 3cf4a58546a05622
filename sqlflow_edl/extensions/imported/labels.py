"""Label of an imported model: what the file tells, and what the options say."""

from __future__ import annotations

from edl import metrics, spec
from edl.errors import SemanticError
from sqlflow_edl.extensions.imported.options import ImportOptions

PREDICTION = "prediction"  # name of the predicted column, if neither the file nor an option names one


def label_column(options: ImportOptions) -> str:
    return options.label or PREDICTION


def class_label(
    options: ImportOptions, of_file: tuple[str | int | bool, ...], width: int | None
) -> spec.ClassLabel:
    """Return the label with the classes of the option, else of the file, else the numbers from 0.

    of_file: classes of the file. width: number of scores, None if it is unknown. Raises SemanticError if they disagree.
    """
    if of_file and options.classes and sorted(map(str, of_file)) != sorted(map(str, options.classes)):
        if _are_positions(of_file) and len(of_file) == len(options.classes):
            of_file = ()
        else:
            raise options.error(
                "classes",
                f"the file has the classes {_list(of_file)}, and classes names {_list(options.classes)}",
                "leave classes out, or name the classes of the file",
            )
    classes = of_file if of_file else options.classes or tuple(range(width or 0))
    count = 2 if width == 1 else width
    if count is not None and len(classes) != count:
        raise options.error(
            "classes",
            f"the model gives the scores of {count} classes, and classes names {len(classes)}: {_list(classes)}",
            "write all classes, in the order of the scores",
        )
    return spec.ClassLabel(label_column(options), classes)


def _are_positions(classes: tuple[object, ...]) -> bool:
    return list(classes) == list(range(len(classes)))


def _list(classes: tuple[object, ...]) -> str:
    shown = ", ".join(map(str, classes[:10]))
    return shown + (", …" if len(classes) > 10 else "")


def metric_names(label: spec.Label) -> tuple[str, ...]:
    """Return the usual metrics of the label."""
    if label.labels:
        return tuple(
            f"{part.column}.{name}"
            for part in label.labels
            for name in metrics.DEFAULTS[metrics.kind_of(part)]
        )
    try:
        return tuple(metrics.DEFAULTS[metrics.kind_of(label)])
    except (KeyError, SemanticError):
        return ()

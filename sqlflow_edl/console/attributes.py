"""WITH attributes available at the cursor, from the dictionary that checks them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from edl.extension_loader import load_or
from sqlflow_edl.analysis.catalog import MODELS, OPTIMIZERS, SCHEDULES, family
from sqlflow_edl.analysis.entries import Catalog, Entry
from sqlflow_edl.analysis.losses import LOSSES
from sqlflow_edl.analysis.settings.attribute_dictionary import AttributeRow, Dictionary
from sqlflow_edl.analysis.settings.attributes import BY_VERB, TRAIN
from sqlflow_edl.analysis.settings.kubernetes import KUBERNETES
from sqlflow_edl.analysis.settings.measurement import MEASUREMENT
from sqlflow_edl.console.context import OPTIMIZES, Context

_USES = ("PREDICT", "EVALUATE", "EXPLAIN")
_OF_TRAINING = (("optimizer", OPTIMIZERS), ("optimizer.schedule", SCHEDULES), ("loss", LOSSES))


def attributes(where: Context) -> list[AttributeRow]:
    """List the attributes of the statement, each name once."""
    return list({row.name: row for row in _rows(where)}.values())


def attribute(where: Context) -> AttributeRow | None:
    """Find the attribute that expects its value at the cursor."""
    return Dictionary(attributes(where)).find(_key(where.inside[:-1]))


def _rows(where: Context) -> Iterator[AttributeRow]:
    if where.verb in OPTIMIZES:
        yield from load_or("sqlflow_edl.extensions.optimization.settings", "OPTIMIZATION", ())
        return
    if where.verb in _USES:
        yield from BY_VERB[where.verb]
        if where.verb == "EVALUATE":
            yield from MEASUREMENT
    else:
        yield from _parameters(MODELS, _estimator(where.before))
        yield from TRAIN
        for name, catalog in _OF_TRAINING:
            yield from _parameters(catalog, _value_before(where.inside, name))
    yield from KUBERNETES


def _parameters(catalog: Catalog[Entry], name: str) -> Iterator[AttributeRow]:
    """Yield the parameters of the entry, or of all entries if none is named."""
    named = catalog.find(name)
    for entry in [named] if named else catalog.entries.values():
        yield from entry.params


def _estimator(before: Iterable[str]) -> str:
    """Return the name of the model; of a family its classifier's name, because its parameters are the same."""
    words = list(before)
    name = words[words.index("TRAIN") + 1] if "TRAIN" in words[:-1] else ""
    family_name = family(name) if name else None
    return f"{family_name}Classifier" if family_name else name


def _value_before(inside: Iterable[str], name: str) -> str:
    """Return the value of an attribute written before the cursor."""
    words = list(inside)
    places = [place for place, word in enumerate(words) if word == "=" and _key(words[:place]) == name]
    return words[places[0] + 1] if places and places[0] + 1 < len(words) else ""


def _key(words: Iterable[str]) -> str:
    """Return the dotted name at the end of the words."""
    key = ""
    for word in reversed(list(words)):
        if key and (word == ".") == key.startswith("."):
            break
        key = word + key
    return key.casefold()

"""Every model of the museum is read by today's code, and predicts what it predicted when it was written.

On a processor with the instructions of the one on which a piece was written, all numbers are equal in all bits, with
one thread or several. On others, libraries choose other instructions. Networks are computed in float32, with sums in
another order: they are compared within `NETWORK`. Trees are computed in float64, of which NumPy's exponential differs
in the last bit: they are compared within `DOUBLES`. With other instruction sets on one machine
(`ATEN_CPU_CAPABILITY=default`, `ONEDNN_MAX_CPU_ISA=SSE41`) a third of the networks differed in the last digits of a
float32.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import edl.spec
from edl.errors import SpecError
from edl.models.archive import read_archive
from edl.program.user_model import PATH_VARIABLE
from edl.spec import JobSpec, from_json, to_json
from sqlflow_edl.session.session import Session
from tests.museum import collection
from tests.museum.collection import MODELS, MODULES, PROCESSOR, SPECS

# of the larger of 1 and the largest number of the column, since bounds of intervals are differences of such numbers:
# other sums of some products, another exponential
NETWORK, DOUBLES = 32 * float(np.finfo(np.float32).eps), 8 * float(np.finfo(np.float64).eps)
SLOW = re.compile("keras|torch_deep_clusters|torch_anomalies")  # each takes seconds to build
IN_MEMORY = [name for name in collection.names() if len(collection.statements(name)) == 1]
BY_STATEMENT = [name for name in collection.names() if name not in IN_MEMORY]
# Structs of edl.spec that no stored file holds, with the reason.
NEVER_STORED = {
    "Column": "the base of feature columns",
    "CategoryColumn": "the base of categories",
    "BaseLabel": "the base of labels",
    "Struct": "the base of the parts of a JobSpec",
    "_Version": "reads the version alone",
    "RowLimits": "is made of fields of Training",
    "Measurement": "is measured in the client",
    **dict.fromkeys(
        ("Number", "Column", "Variable", "Arithmetic", "Total", "Condition", "Domain", "Optimization"),
        "is solved in the client",
    ),
    "RunnableSpec": "is of a program in a pod, which ends with it",
}


def predictions(name: str) -> pa.Table:
    """Predictions of the model when it was written, with the names that columns of confidences have now."""
    found = collection.read_table(MODELS / f"{name}.arrow")
    names = [re.sub("_prob$", "_confidence", column) for column in found.column_names]
    return found.rename_columns(names).replace_schema_metadata(found.schema.metadata)


def assert_predicts(name: str, new: pa.Table) -> None:
    """The columns, types and values of the predictions are those of the museum."""
    old = predictions(name)
    assert new.schema.equals(old.schema)
    spec = read_archive(MODELS / f"{name}.zip").spec
    is_network = any(each.framework in ("torch", "keras") for each in (spec, *spec.models))
    is_exact = old.schema.metadata[PROCESSOR].decode() == collection.processor()
    most = NETWORK if is_network else DOUBLES
    for column in old.column_names:
        found, wanted = (table[column].combine_chunks() for table in (new, old))
        if is_exact or not (numbers := as_numbers(wanted)).size:
            assert bits(found) == bits(wanted), column
        else:
            assert found.is_null().equals(wanted.is_null())
            least = most * max(1.0, float(np.abs(numbers).max()))
            np.testing.assert_allclose(as_numbers(found), numbers, rtol=most, atol=least, err_msg=column)


def bits(values: pa.Array) -> list[object]:
    """Values to compare: numbers by their bits, of which NaN and -0.0 have theirs."""
    if pa.types.is_floating(values.type):
        kind = pa.int64() if values.type == pa.float64() else pa.int32()
        return list(values.view(kind).to_pylist())
    return list(values.to_pylist())


def as_numbers(values: pa.Array) -> np.ndarray:
    """Numbers of a column, or in the texts of an extra output; none of other columns."""
    if pa.types.is_floating(values.type):
        return values.drop_null().to_numpy(zero_copy_only=False)
    texts = [text for text in values.to_pylist() if isinstance(text, str)]
    try:
        return np.array([float(each) for text in texts for each in text.split(",")])
    except ValueError:
        return np.empty(0)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.soak) if SLOW.match(name) else name for name in IN_MEMORY]
)
def test_a_model_predicts_what_it_predicted_when_it_was_written(name: str) -> None:
    assert_predicts(name, collection.predict(MODELS / f"{name}.zip"))


@pytest.mark.soak
@pytest.mark.parametrize("name", BY_STATEMENT)
def test_a_statement_over_a_stored_model_gives_the_result_of_its_time(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PATH_VARIABLE, str(MODULES))
    with Session("duckdb:") as session:
        collection.fill_tables(session)
        collection.store(MODELS / f"{name}.zip", session)
        assert_predicts(name, list(session.run(collection.statements(name)[1]))[-1].to_arrow())


# JobSpecs ----------------------------------------------------------------------------------------------------


def stored_specs() -> dict[str, bytes]:
    """JobSpecs as they were written, in archives and in the folders of jobs."""
    found = {path.stem: path.read_bytes() for path in sorted(SPECS.glob("*.json"))}
    for path in sorted(MODELS.glob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            found[path.name] = archive.read("job.json")
    return found


def test_a_job_spec_keeps_its_bytes() -> None:
    for name, data in stored_specs().items():
        assert to_json(from_json(data)) == data, f"{name}: a new field must be written only where it differs"


def test_every_struct_of_a_spec_is_in_the_museum() -> None:
    held = {"Threshold", "ScoreCurve"}  # parts of calibrations
    for data in stored_specs().values():
        held |= {type(each).__name__ for each in structs(from_json(data))}
    for path in sorted(MODELS.glob("*.zip")):
        archive = read_archive(path)
        parts = (archive.residuals, archive.calibration, archive.importances, archive.fold_values)
        held |= {type(each).__name__ for part in parts for each in structs(part)}
    lacking = spec_structs() - held - NEVER_STORED.keys()
    assert not lacking, "add a piece that holds it: CONTRIBUTING.md, The museum"


def spec_structs() -> set[str]:
    """Names of all structs that the modules of edl.spec define."""
    base = edl.spec.__name__
    return {each.__name__ for each in subclasses(msgspec.Struct) if each.__module__.startswith(f"{base}.")}


def subclasses(kind: type) -> Iterator[type]:
    for each in kind.__subclasses__():
        yield each
        yield from subclasses(each)


def structs(value: object) -> Iterator[msgspec.Struct]:
    """Structs in the value, at any depth."""
    if isinstance(value, msgspec.Struct):
        yield value
        for name in value.__struct_fields__:
            yield from structs(getattr(value, name))
    elif isinstance(value, tuple | list):
        for each in value:
            yield from structs(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from structs(each)


# Later fields ------------------------------------------------------------------------------------------------


def test_a_spec_with_a_field_of_a_later_version_is_refused_by_name() -> None:
    data = stored_specs()["torch_own.zip"].decode()
    for place in ('"version": 1', '"epochs": 2'):
        later = data.replace(place, f'"meaning_of_tomorrow": 1, {place}', 1)
        assert later != data
        with pytest.raises(SpecError, match="unknown field `meaning_of_tomorrow`") as error:
            from_json(later)
        assert error.value.hint == (
            "another version has made it: update sqlflow-edl, or train the model again"
        )


def test_a_spec_of_a_later_version_is_refused_by_its_number() -> None:
    later = stored_specs()["torch_own.zip"].decode().replace('"version": 1', '"version": 2')
    with pytest.raises(SpecError, match="this JobSpec has version 2; this program reads version 1"):
        from_json(later)


def test_every_field_that_came_later_has_a_default() -> None:
    """Fields that the oldest files lack are optional; those that all of them have may be required."""
    for path in sorted(MODELS.glob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            written: dict[str, Any] = msgspec.json.decode(archive.read("job.json"))
        required = {each.name for each in msgspec.structs.fields(JobSpec) if each.required}
        assert required <= written.keys()

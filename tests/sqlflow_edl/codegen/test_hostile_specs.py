"""FAULTS A25: whatever text a JobSpec holds, its program names nothing that the program of a good one does not."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from edl.errors import SpecError, SQLFlowError
from edl.spec import Candidate, JobSpec, Own, Search, Zoo, from_json, to_json
from sqlflow_edl.codegen import GeneratedProgram, generate
from tests.sqlflow_edl.codegen.jobs import JOBS, job
from tests.sqlflow_edl.codegen.test_program import searched

CODE = "__import__('evil').run()"
FILE = re.compile(r"model\.py|reader\.py|job\.json|\.?[\w.]+|vocabulary/\w+\.json")
IN_ENSEMBLE = re.compile(rf"(members/\d+/)?({FILE.pattern})")
SHAPES = (
    *("{}", '"); {} #', "'); {} #", '"""\n{}\n"""', "\r{}\r", "\u2028{}"),
    *("x={}, y", "a\nimport evil", "../../evil", "evil.run", "__class__"),
)
ALIKE = ("dnn_regressor", "linear_classifier", "deepfm_regressor")  # to others that are tried
EACH = [  # in both frameworks; `make test` has one of them in turn
    pytest.param(name, framework, marks=pytest.mark.soak if (turn + place) % 2 else ())
    for turn, name in enumerate(name for name in JOBS if name not in ALIKE)
    for place, framework in enumerate(("keras", "torch"))
]


def places(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    """Where a text stands, as a value or as a key."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield "key", (*path, key)
            yield from places(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from places(value, (*path, index))
    elif isinstance(node, str):
        yield "value", path


def changed(encoded: bytes, kind: str, path: tuple[str | int, ...], text: str) -> bytes:
    """The JobSpec with another text there."""
    root = node = json.loads(encoded)
    *parents, last = path
    for part in parents:
        node = node[part]
    if kind == "value":
        node[last] = text
    else:
        items = [(text if key == last else key, value) for key, value in node.items()]
        node.clear()
        node.update(items)
    return json.dumps(root).encode()


def named(program: GeneratedProgram) -> set[str]:
    """All that the program's Python names: variables, attributes, keywords, imports."""
    found: set[str] = set()
    for name, content in program.files.items():
        if not name.endswith(".py"):
            continue
        for node in ast.walk(ast.parse(content)):
            for attribute in ("id", "attr", "arg", "module", "name", "asname"):
                if isinstance(value := getattr(node, attribute, None), str):
                    found.add(value)
    return found


@pytest.mark.variants(4)
@pytest.mark.parametrize(("name", "framework"), EACH)
def test_a25_no_text_of_a_jobspec_becomes_code(
    name: str, framework: str, request: pytest.FixtureRequest
) -> None:
    each = 1 if request.config.getoption("--soak") else 8
    encoded = to_json(job(framework, **JOBS[name]))  # type: ignore[arg-type]
    good = named(generate(from_json(encoded)))
    made = refused = 0
    for turn, (kind, path) in enumerate(places(json.loads(encoded))):
        for shape in SHAPES[turn % each :: each]:
            try:
                program = generate(from_json(changed(encoded, kind, path, shape.format(CODE))))
                new = named(program) - good
            except (SQLFlowError, SyntaxError):  # a program that is none is an error when it is loaded
                refused += 1
                continue
            made += 1
            assert not any("(" in each or "__" in each for each in new), (path, shape, new)
            # The name of a user's own model is looked up, and compared with its archive, before it is imported.
            assert "evil" not in new or path[0] in ("own", "model", "inputs"), (path, shape, new)
            assert all(FILE.fullmatch(file) for file in program.files), (path, shape, program.files)
    assert made > 50 / each
    assert refused > 50 / each


def test_a25_a_stored_model_of_a_zoo_makes_no_program() -> None:
    spec = msgspec.structs.replace(job("dnn_regressor"), zoo=Zoo("/", "os", "system", ""))
    with pytest.raises(SpecError, match="has no program of a statement"):
        generate(spec)


def test_a25_a_stored_spec_takes_no_other_function_of_a_module() -> None:
    spec = job("torch", own=Own("nets", "Model", "", (), ("loss", "system")))
    with pytest.raises(SpecError, match="'system' is not a name of a function of the contract"):
        generate(spec)


def hostile(spec: JobSpec) -> Iterator[JobSpec]:
    """The spec with texts that would become code."""
    replace = msgspec.structs.replace
    yield replace(spec, model=replace(spec.model, name=CODE))
    yield replace(spec, inputs={CODE: ()})
    yield replace(spec, query=replace(spec.query, source=f"\n{CODE}"))
    yield replace(spec, own=Own("nets", "Model", "", (), ("system",)))
    yield replace(spec, zoo=Zoo("/", "os", "system", ""))


def test_a25_a_member_or_a_candidate_with_hostile_names_makes_no_program() -> None:
    ensemble, replace = searched(), msgspec.structs.replace
    first, second = ensemble.members
    for evil in hostile(second.spec):
        with pytest.raises(SpecError):
            generate(replace(ensemble, members=(first, replace(second, spec=evil))))
        found = replace(ensemble, members=(), search=Search((Candidate("evil", evil),), "rmse"))
        with pytest.raises(SpecError):
            generate(found)
        with pytest.raises(SpecError):  # however deep it lies
            inner = replace(ensemble, members=(replace(second, spec=evil),))
            generate(replace(ensemble, members=(replace(first, spec=inner),)))


def test_a25_no_text_of_an_ensemble_becomes_code() -> None:
    encoded = to_json(searched())
    good = named(generate(from_json(encoded)))
    for turn, (kind, path) in enumerate(places(json.loads(encoded))):
        for shape in SHAPES[turn % 3 : 3 : 3]:
            try:
                program = generate(from_json(changed(encoded, kind, path, shape.format(CODE))))
                new = named(program) - good
            except (SQLFlowError, SyntaxError):
                continue
            assert not any("(" in each or "__" in each for each in new), (path, shape, new)
            assert "evil" not in new, (path, shape, new)
            assert all(IN_ENSEMBLE.fullmatch(file) for file in program.files), (path, shape, program.files)

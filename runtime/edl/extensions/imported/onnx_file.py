"""Contents of an ONNX file as far as they decide whether it is loaded: operators, external data, metadata.

ONNX Runtime looks for external data beside the working directory if a model comes from memory, and a file names any
path. So this is looked at before a library loads the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from edl.errors import JobError
from edl.extensions.imported.wire import FieldValue, decode_text, fields, message, varint

# Domains of operators that are part of ONNX Runtime.
DOMAINS = frozenset({"", "ai.onnx", "ai.onnx.ml", "com.microsoft"})
_DEEPEST = 16  # graphs inside of operators
# Attributes with the classes of a classifier, in the order of its scores.
_CLASSES = frozenset({"classlabels_int64s", "classlabels_ints", "classlabels_strings"})
_SAME = frozenset({"Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze"})
_CHOOSES = "ArrayFeatureExtractor"  # the predicted class, among all
_EXTERNAL = 1  # location of a tensor's data
_WIDTHS = {6: 4, 7: 8}  # bytes of whole numbers, by the number of their type
_MOST_CLASSES = 1000  # values of a constant that are kept


@dataclass(frozen=True, slots=True)
class GraphNode:
    """Operator: its name, its domain, and the names of its inputs and outputs."""

    operator: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    classes: tuple[str | int, ...] = ()


@dataclass(slots=True)
class OnnxFile:
    """Description of an ONNX file by itself. `external` are the names of tensors whose data is in other files."""

    producer: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    nodes: list[GraphNode] = field(default_factory=list)  # of the graph itself
    outputs: list[str] = field(default_factory=list)
    operators: set[tuple[str, str]] = field(default_factory=set)  # domain and name, of all graphs
    functions: set[str] = field(default_factory=set)  # domains of functions that the file defines
    external: list[str] = field(default_factory=list)
    constants: dict[str, tuple[str | int, ...]] = field(
        default_factory=dict
    )  # short ones of texts and whole numbers
    has_graph: bool = False

    @property
    def foreign_operators(self) -> list[str]:
        """Names of the operators that only another library has."""
        domains = DOMAINS | self.functions
        return sorted(f"{domain}.{name}" for domain, name in self.operators if domain not in domains)

    def operator_behind(self, output: str) -> str:
        """Return the operator that makes a value, without those that only rename or convert it; empty if unknown."""
        node = self._node_behind(output)
        return node.operator if node is not None else ""

    @property
    def classes(self) -> tuple[str | int, ...]:
        """Classes of the graph, by the operators that make its outputs; empty without any, or if they differ.

        They are an attribute of a classifier, or a constant from which the predicted one is taken. Classifiers inside
        of the graph may have numbers instead.
        """
        labels = set()
        for node in filter(None, map(self._node_behind, self.outputs)):
            if node.operator == _CHOOSES and node.inputs and node.inputs[0] in self.constants:
                labels.add(self.constants[node.inputs[0]])
            elif node.classes:
                labels.add(node.classes)
        return labels.pop() if len(labels) == 1 else ()

    def _node_behind(self, value: str) -> GraphNode | None:
        """Return the operator that makes a value, behind those that only rename or convert it."""
        for _ in self.nodes:
            node = next((node for node in self.nodes if value in node.outputs), None)
            if node is None or node.operator not in _SAME or not node.inputs:
                return node
            value = node.inputs[0]
        return None


def read_onnx(data: bytes) -> OnnxFile:
    """Read a file. Raises ValueError if it is damaged, or is none of ONNX."""
    file = OnnxFile()
    names = ["", ""]  # of the producer, and its version
    for number, value in fields(memoryview(data)):
        if number in (2, 3):
            names[number - 2] = decode_text(value)
        elif number == 7:
            file.has_graph = True
            _read_graph(file, message(value), depth=0)
        elif number == 14:
            pair = {part: decode_text(text) for part, text in fields(message(value))}
            file.metadata[pair.get(1, "")] = pair.get(2, "")
        elif number == 25:
            _read_function(file, message(value))
    if not file.has_graph:
        raise ValueError("it has no graph")
    file.producer = " ".join(filter(None, names))
    return file


def refuse_parts(file: OnnxFile) -> None:
    """Raise JobError for data in other files, and for operators of other libraries."""
    if file.external:
        raise JobError(
            f"the file keeps the data of {len(file.external):,} tensors ({file.external[0]}, …) in other files, "
            "which are not imported",
            hint="save it as one file: onnx.save_model(onnx.load('m.onnx'), 'one.onnx', save_as_external_data=False); "
            "torch.onnx.export has external_data=False",
        )
    if foreign := file.foreign_operators:
        raise JobError(
            f"the file needs operators that only another library has: {', '.join(foreign[:5])}",
            hint="export it with operators of ONNX alone; preprocess texts and images in the query or before it",
        )


def _read_graph(file: OnnxFile, data: memoryview, depth: int) -> None:
    if depth > _DEEPEST:
        raise ValueError("graphs stand too deep in each other")
    for number, value in fields(data):
        if number == 1:
            node = _read_node(file, message(value), depth)
            if depth == 0:
                file.nodes.append(node)
        elif number == 5:
            _read_tensor(file, message(value))
        elif number == 12 and depth == 0:
            file.outputs += [decode_text(name) for part, name in fields(message(value)) if part == 1]
        elif number == 15:
            _read_sparse_tensor(file, message(value))


def _read_function(file: OnnxFile, data: memoryview) -> None:
    for number, value in fields(data):
        if number == 7:
            _read_node(file, message(value), depth=1)
        elif number == 10:
            file.functions.add(decode_text(value))


def _read_node(file: OnnxFile, data: memoryview, depth: int) -> GraphNode:
    inputs, outputs, texts, classes = [], [], {4: "", 7: ""}, tuple[str | int, ...]()
    for number, value in fields(data):
        if number == 1:
            inputs.append(decode_text(value))
        elif number == 2:
            outputs.append(decode_text(value))
        elif number in texts:
            texts[number] = decode_text(value)
        elif number == 5:
            classes = _read_attribute(file, message(value), depth) or classes
    file.operators.add((texts[7], texts[4]))
    return GraphNode(texts[4], texts[7], tuple(inputs), tuple(outputs), classes)


def _read_attribute(file: OnnxFile, data: memoryview, depth: int) -> tuple[str | int, ...]:
    """Read the graphs and tensors of an attribute, and return the classes that it names."""
    name, numbers, texts = "", list[int](), list[str]()
    for number, value in fields(data):
        if number == 1:
            name = decode_text(value)
        elif number in (5, 10):
            _read_tensor(file, message(value))
        elif number in (6, 11):
            _read_graph(file, message(value), depth + 1)
        elif number in (22, 23):
            _read_sparse_tensor(file, message(value))
        elif number == 8 and name in _CLASSES:
            numbers += _integers(value)
        elif number == 9 and name in _CLASSES:
            texts.append(decode_text(value))
    return tuple(texts or numbers) if name in _CLASSES else ()


def _integers(value: FieldValue) -> Iterator[int]:
    """Yield the numbers of a field, one or packed ones, as signed ones."""
    if isinstance(value, int):
        yield value - (1 << 64) if value >> 63 else value
        return
    place = 0
    while place < len(value):
        number, place = varint(value, place)
        yield number - (1 << 64) if number >> 63 else number


def _read_tensor(file: OnnxFile, data: memoryview) -> None:
    name, is_external, element = "", False, 0
    texts, numbers, raw = list[str](), list[int](), b""
    for number, value in fields(data):
        if number == 8:
            name = decode_text(value)
        elif number == 2 and isinstance(value, int):
            element = value
        elif number in (5, 7) and len(numbers) < _MOST_CLASSES and element in _WIDTHS:
            numbers += _integers(value)
        elif number == 6 and len(texts) < _MOST_CLASSES:
            texts.append(decode_text(value))
        elif number == 9 and element in _WIDTHS:
            raw = bytes(message(value)[: 8 * _MOST_CLASSES])
        is_external |= number == 13 or (number == 14 and value == _EXTERNAL)
    if raw:
        size = _WIDTHS[element]
        starts = range(0, len(raw), size)
        numbers = [int.from_bytes(raw[start : start + size], "little", signed=True) for start in starts]
    if texts or numbers:
        file.constants[name] = tuple(texts or numbers)
    if is_external:
        file.external.append(name or "a constant")


def _read_sparse_tensor(file: OnnxFile, data: memoryview) -> None:
    for number, value in fields(data):
        if number in (1, 2):
            _read_tensor(file, message(value))

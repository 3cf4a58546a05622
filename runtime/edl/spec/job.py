"""The JobSpec: everything a job needs, typed, written out, and never a secret.

It can be stored, diffed and submitted on another machine. Everything derived is in it, so reading a JobSpec tells
exactly what will run; it is stored with the model, so PREDICT, EVALUATE and EXPLAIN never derive anything again.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from edl.errors import SpecError
from edl.spec.features import Feature, Label, source_columns

VERSION = 1

Kind = Literal["train", "predict", "evaluate", "explain"]
Work = Literal["train", "predict", "evaluate"]  # what the tasks of a job do
EvaluationReport = Literal["figures", "confusion_matrix", "roc_curve"]  # what EVALUATE answers
Framework = Literal["keras", "torch"]
Strategy = Literal["auto", "local", "async", "sync", "allreduce"]
Scalar = bool | int | float | str | None
Parameter = Scalar | tuple[Scalar, ...]


class Struct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of the JobSpec's parts."""


class Field(Struct, frozen=True):
    """A column of the query's result: its name and its Arrow type, as `str(type)` writes it."""

    name: str
    type: str


class Query(Struct, frozen=True):
    """Where the rows come from. `source` is a URL without a password."""

    select: str
    dialect: str
    source: str
    schema: tuple[Field, ...] = ()


class Rows(Struct, frozen=True):
    """The fixed rows that statistics were computed on and the job reads.

    pinned: False when the query was only looked at (compile, EXPLAIN); then the job pins when it starts. The first
    `training` rows of the pinned order are trained on, the `validation` rows after them are measured only.
    """

    pinned: bool
    total: int
    training: int
    validation: int = 0
    digest: str = ""  # of schema and values, in the pinned order


class Component(Struct, frozen=True):
    """An optimizer, loss or model by name, with the parameters that differ from its defaults or matter to a reader."""

    name: str
    params: dict[str, Parameter] = {}


class Own(Struct, frozen=True):
    """A model of the user's own, by the dotted name in `JobSpec.model`.

    module, attribute: what a program imports. digest: of the source that defines it, SHA-256. passes: parameters that
    the program itself fills in: features, in_features, outputs, out_features. functions: of the contract, those that
    the program takes from the module too: loss, optimizer, eval_metrics_fn, callbacks.
    """

    module: str
    attribute: str
    digest: str
    passes: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()


class Zoo(Struct, frozen=True):
    """A hand-written module of a model zoo, which stands in place of a program's model.py.

    path: the folder of the zoo, where the job runs. module, attribute: what makes the model, with the parameters of
    `JobSpec.model`. digest: of the module's source, SHA-256. functions: of the contract, those that have another name,
    or are in another module: `my_loss`, `losses.my_loss`. reader_params: what custom_data_reader is given by name.
    """

    path: str
    module: str
    attribute: str
    digest: str
    functions: dict[str, str] = {}
    reader_params: dict[str, Parameter] = {}


class Training(Struct, frozen=True):
    """How the optimizer's steps are taken.

    minibatches_per_task: rows that are handed out and permuted together; 0 leaves it to `edl.tasks.ranges`.
    early_stopping: end after so many epochs without a validation loss that is lower by more than `min_delta`; 0 never.
    keep: the weights of the epoch with the lowest validation loss, or of the last step. Both need validation rows.
    """

    epochs: int = 1
    batch_size: int = 512
    shuffle: bool = True
    seed: int = 0
    max_steps: int = 0  # 0: no limit
    minibatches_per_task: int = 0
    validation_fraction: float = 0.0
    early_stopping: int = 0
    min_delta: float = 0.0
    keep: Literal["best", "last"] = "last"


class Checkpoints(Struct, frozen=True):
    """When a job of several processes writes down where it is, and how often that is kept.

    steps: after so many optimizer steps, 0: not. secs: after so many seconds, 0: not. keep: the last ones, 0: all.
    copies: of parameter servers, as files of the job, or in the memory of two servers each, the last two of them.
    """

    steps: int = 0
    secs: float = 30.0
    keep: int = 3
    copies: Literal["files", "neighbours"] = "files"


class Evaluation(Struct, frozen=True):
    """When the validation rows are measured in the middle of an epoch, besides at its end; 0: not.

    steps: after so many optimizer steps. secs: after so many seconds, the first time `start_delay_secs` after
    the start. throttle_secs: not sooner than this after the last time.
    """

    steps: int = 0
    secs: float = 0.0
    start_delay_secs: float = 0.0
    throttle_secs: float = 0.0


class Weights(Struct, frozen=True):
    """How much each row counts: `column` of the query, divided by `mean`, that of the training rows."""

    column: str
    mean: float = 1.0


class Cluster(Struct, frozen=True):
    """How many instances, and how they share the work; the strategy `auto` lets the compiler choose.

    workers: processes with a master of their own; 0: the job runs in one process, without a master.
    parameter_servers: that hold the parameters; 0 where the strategy needs none. local_steps: of async, minibatches
    between two pushes. grads_to_wait: of sync, pushes that make a step; 0 in others. `edl.spec.strategy` chooses what
    is not written. priority: of the job among those that share a quota of slots; higher is more urgent.
    """

    workers: int = 0
    parameter_servers: int = 0
    strategy: Strategy = "auto"
    local_steps: int = 1
    grads_to_wait: int = 0
    priority: int = 0


class Explanation(Struct, frozen=True):
    """What is explained by Shapley values of the columns; see `edl.worker.evaluation.shapley`.

    level: the model, by how much each column matters over all rows; or each of the rows. samples: rows of the query
    that a row is compared with; more make the values more exact, and take longer.
    """

    level: Literal["model", "rows"] = "model"
    samples: int = 32


class Output(Struct, frozen=True):
    """Where results go: a model name for train, a table for the others, empty for a result set.

    column: the name of the column that PREDICT, and EXPLAIN of each row, predict into; keep: input columns that pass
    through to the result.
    """

    name: str = ""
    column: str = ""
    keep: tuple[str, ...] = ()


class JobSpec(Struct, frozen=True):
    kind: Kind
    statement: str
    query: Query
    rows: Rows
    framework: Framework
    model: Component
    inputs: dict[str, tuple[Feature, ...]]  # model input -> its features, in order
    label: Label
    optimizer: Component
    loss: Component
    metrics: tuple[str, ...]
    schedule: Component | None = None  # of the learning rate; None: it stays
    weights: Weights | None = None  # None: each row counts once
    training: Training = Training()
    evaluation: Evaluation = Evaluation()
    checkpoints: Checkpoints = Checkpoints()
    cluster: Cluster = Cluster()
    output: Output = Output()
    trained_model: str = ""  # name@version: of the model that is used; TRAIN: whose weights it starts from
    batch_size: int = 8192  # PREDICT, EVALUATE, EXPLAIN: rows of one forward pass
    explanation: Explanation | None = None  # of EXPLAIN
    report: EvaluationReport = "figures"  # of EVALUATE
    validation: Query | None = None  # of the validation rows, where they are not the last of the query's
    own: Own | None = None
    zoo: Zoo | None = None
    edited: bool = False  # model.py no longer is what the compiler wrote
    version: int = VERSION

    @property
    def work(self) -> Work:
        """What the tasks do: explaining a model measures something, explaining rows makes something of each."""
        if self.kind != "explain":
            return self.kind
        return "predict" if self.explanation is not None and self.explanation.level == "rows" else "evaluate"

    @property
    def features(self) -> tuple[Feature, ...]:
        """All features, over all model inputs."""
        return tuple(feature for features in self.inputs.values() for feature in features)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the query that the features read, each once, in order."""
        return tuple(dict.fromkeys(name for feature in self.features for name in source_columns(feature)))


class _Version(msgspec.Struct):
    version: int


def to_json(spec: JobSpec) -> bytes:
    """Readable, deterministic JSON: the same spec gives the same bytes."""
    return msgspec.json.format(msgspec.json.encode(spec), indent=2) + b"\n"


def from_json(data: bytes | str) -> JobSpec:
    """The JobSpec in `data`; SpecError when it is of an unknown version or is not one, saying where."""
    try:
        version = msgspec.json.decode(data, type=_Version).version
        if version != VERSION:
            raise SpecError(
                f"this JobSpec is of version {version}; this program reads version {VERSION}",
                hint="update sqlflow-edl, or train the model again",
            )
        return msgspec.json.decode(data, type=JobSpec)
    except msgspec.MsgspecError as error:
        raise SpecError(f"not a JobSpec: {error}") from None

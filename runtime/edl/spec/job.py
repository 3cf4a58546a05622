"""JobSpec: the complete, typed description of a job, without secrets.

It can be stored, compared and submitted on another machine. It contains all derived settings, so it defines exactly
what will run; it is stored with the model, so PREDICT, EVALUATE and EXPLAIN never derive anything again.
"""

from __future__ import annotations

import math
from itertools import chain
from typing import Literal

import msgspec

from edl.errors import SpecError
from edl.installation import VERSION as PACKAGE
from edl.spec.column import source_columns
from edl.spec.features import Feature
from edl.spec.forecast import Forecast
from edl.spec.imported import Imported
from edl.spec.labels import Label
from edl.spec.residuals import Widths
from edl.spec.rows import Rows, Split

VERSION = 1

Kind = Literal["train", "predict", "evaluate", "explain"]
Work = Literal["train", "predict", "evaluate", "search"]  # work of a job's tasks
# Results of EVALUATE; the last two are of PREDICT.
Report = Literal["figures", "confusion_matrix", "roc_curve", "drift", "features"]
Framework = Literal["keras", "torch", "lightgbm", "xgboost", "ensemble", "onnx", "none"]
Strategy = Literal["auto", "local", "async", "sync", "allreduce"]
Device = Literal["auto", "cpu", "cuda"]
Precision = Literal["float32", "bfloat16", "float16"]
Scalar = bool | int | float | str | None
Item = Scalar | tuple[Scalar | tuple[Scalar, ...], ...]
Parameter = Scalar | tuple[Item, ...]  # lists may hold lists, which may hold lists

TREES: tuple[Framework, ...] = ("lightgbm", "xgboost")
ENSEMBLE: Framework = "ensemble"  # programs of other frameworks with averaged scores
ONNX: Framework = "onnx"  # file of ONNX, which predicts and is not trained
SCORED: tuple[Framework, ...] = (ENSEMBLE, ONNX)  # their adapters give scores, and not outputs
NO_FRAMEWORK: Framework = "none"  # of a transform, which has fitted features alone
BLOCK = 8192  # rows of one forward pass
LEAST_SQUARES, NEWTON = (
    "least_squares",
    "newton",
)  # optimizers that solve for the weights of a linear model: of a number, of classes
COMPONENTS, FACTORS = (
    "principal_components",
    "alternating_least_squares",
)  # the same, of models of decompositions
SOLVERS = (LEAST_SQUARES, NEWTON, COMPONENTS, FACTORS)
SCRIPT = "script"  # name of the model, the optimizer and the loss of a script, which alone knows them
ALL_ROWS = 2**40  # batch size of trees: a step is a round of boosting, over all training rows


class Struct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of the JobSpec's parts."""


class Field(Struct, frozen=True):
    """Column of the query's result: its name and its Arrow type in the form of `str(type)`."""

    name: str
    type: str


class Increment(Struct, frozen=True):
    """Part of a query's rows: the rows with a `column` above `after` and at most `until`.

    The values are whole numbers, or dates and times in ISO 8601. None is no limit; `until` is None before the rows are
    counted.
    """

    column: str
    after: int | str | None = None
    until: int | str | None = None


class QueryPart(Struct, frozen=True):
    """Part of a query that a search had time for: one of so many `parts` of the rows, by a hash of their values.

    columns: those that are read; empty for all.
    """

    parts: int
    columns: tuple[str, ...] = ()


class Query(Struct, frozen=True):
    """Origin of the rows. `source` is a URL without a password. `increment`: the part of them that is trained on.
    `part`: unset if all of the query is read.

    `readings`: how columns of CSV files are read (`edl.data.files.csv_readings`), where `schema` does not tell it;
    unset if it tells all.
    """

    select: str
    dialect: str
    source: str
    schema: tuple[Field, ...] = ()
    increment: Increment | None = None
    readings: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    part: QueryPart | msgspec.UnsetType = msgspec.UNSET


class Component(Struct, frozen=True):
    """Optimizer, loss or model by name, with the parameters that differ from its defaults or matter to a reader."""

    name: str
    params: dict[str, Parameter] = {}


class Own(Struct, frozen=True):
    """User-defined model, by the dotted name in `JobSpec.model`.

    `module` and `attribute` are imported by the program. `digest` is the SHA-256 of the defining source. `passes`
    lists parameters that the program supplies: features, in_features, outputs, out_features. `functions` lists
    functions of the contract that the program also takes from the module: loss, optimizer, eval_metrics_fn,
    callbacks. `image` is the image that has the module.
    """

    module: str
    attribute: str
    digest: str
    passes: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    image: str | msgspec.UnsetType = msgspec.UNSET


class Zoo(Struct, frozen=True):
    """Hand-written module of a model zoo, used instead of a program's model.py.

    `path` is the folder of the zoo on the machine of the job, or relative to the job folder. `module` and `attribute`
    name the function or class that makes the model, with the parameters of `JobSpec.model`. `digest` is the SHA-256
    of the module's source. `functions` maps functions of the contract that have another name, or are in another
    module: `my_loss`, `losses.my_loss`. `reader_params` are keyword arguments of custom_data_reader.
    `embedding_threshold` is the size in bytes from which on embedding layers become row tables; unset is none.
    """

    path: str
    module: str
    attribute: str
    digest: str
    functions: dict[str, str] = {}
    reader_params: dict[str, Parameter] = {}
    embedding_threshold: int | msgspec.UnsetType = msgspec.UNSET


MOST_COUNT = 255  # of the steps that an id may have to wait for its row
ROW_LIMITS = ("embedding_min_count", "embedding_max_rows", "embedding_ttl_steps")  # of `Training`


class RowLimits(Struct, frozen=True):
    """Bounds of a row table, see `edl.embeddings.limits`.

    An id gets a row in the step that is the `min_count`-th to train with it. The least recently trained rows are
    dropped beyond `max_rows`, and those not trained for `ttl_steps` steps; 0 is no bound.
    """

    min_count: int = 0
    max_rows: int = 0
    ttl_steps: int = 0


class Training(Struct, frozen=True):
    """Settings of the optimization.

    `minibatches_per_task` is the number of minibatches that are assigned and permuted together; 0 leaves it to
    `edl.tasks.ranges`. `early_stopping` ends training after so many epochs without a validation loss lower by more than
    `min_delta`; 0 is never. `tolerance` ends it after an epoch if the training loss is not lower than the previous
    epoch's by this share of it; 0 is never. `keep` selects the weights of the epoch with the lowest validation loss, or
    of the last step. `early_stopping` and `keep` need validation rows.

    `unseen_rate` is the share of the known ids of a category that count as unseen in an epoch, so that a network learns
    what to expect of unseen values. `calibration` fits a temperature to the validation rows. `threshold`, of the second
    of two classes, is a probability or the metric of the validation rows that chooses it. PREDICT and EVALUATE apply
    both. With `disk_cache` the training rows of trees are on disk, and in memory by parts.
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
    tolerance: float = 0.0
    keep: Literal["best", "last"] = "last"
    time_limit: float = 0.0
    calibration: Literal["", "temperature"] = ""
    threshold: float | str | None = None
    embedding_min_count: int = 0
    embedding_max_rows: int = 0
    embedding_ttl_steps: int = 0
    unseen_rate: float | msgspec.UnsetType = msgspec.UNSET
    disk_cache: bool | msgspec.UnsetType = msgspec.UNSET

    @property
    def row_limits(self) -> RowLimits:
        """Limits of each embedding table."""
        return RowLimits(self.embedding_min_count, self.embedding_max_rows, self.embedding_ttl_steps)


class Checkpoints(Struct, frozen=True):
    """Frequency, retention and location of the checkpoints of a job with several processes.

    `steps` and `secs` are intervals in optimizer steps and in seconds; 0 disables each. `keep` is the number of
    checkpoints that are retained; 0 is all. `copies` says where parameter servers store them: in files of the job, or
    in the memory of two servers each, which retain the last two.
    """

    steps: int = 0
    secs: float = 30.0
    keep: int = 3
    copies: Literal["files", "neighbours"] = "files"


class Evaluation(Struct, frozen=True):
    """Schedule of validations within an epoch, in addition to those at its end; 0 disables each.

    `steps` and `secs` are intervals in optimizer steps and in seconds, the latter beginning `start_delay_secs` after
    the start. `throttle_secs` is the minimum interval.
    """

    steps: int = 0
    secs: float = 0.0
    start_delay_secs: float = 0.0
    throttle_secs: float = 0.0


class Weights(Struct, frozen=True):
    """Weight of each row: `column` of the query, divided by `mean`, its mean over the training rows."""

    column: str
    mean: float = 1.0


# What an acknowledged update survives: nothing, the end of its process, or the end of its machine.
DurableUpdates = Literal["none", "process", "machine"]


class Cluster(Struct, frozen=True):
    """Number of instances and how they share the work. The strategy `auto` lets the compiler choose.

    `workers` is the number of processes with a separate master; 0 runs the job in one process, without a master.
    `parameter_servers` is 0 for strategies without them. `local_steps` (async) is the number of minibatches between
    two pushes. `grads_to_wait` (sync) is the number of pushes that make a step; 0 otherwise. `edl.spec.strategy`
    chooses missing settings. `priority` is relative to other jobs with the same quota of slots; higher is more
    urgent. `task_timeout` is the seconds without progress after which a worker is replaced; 0 derives them from the
    progress so far. `deadline` is the seconds after which a job that has not ended is stopped; 0 means none.
    `max_staleness` (async): updates that a gradient may be behind at its full learning rate; 0 is no bound.
    `durable_updates` (async): servers log updates before they acknowledge them, so that none is lost with the process
    of a server, or with its machine. `max_workers`: the number of workers is automatic, at most this, and begins with
    `workers`.
    """

    workers: int = 0
    parameter_servers: int = 0
    strategy: Strategy = "auto"
    local_steps: int = 1
    grads_to_wait: int = 0
    priority: int = 0
    task_timeout: float = 0.0
    deadline: float = 0.0
    durable_updates: DurableUpdates = "none"
    max_staleness: int = 0
    max_workers: int | msgspec.UnsetType = msgspec.UNSET


Method = Literal["expected_gradients"] | msgspec.UnsetType  # unset: Shapley values


class Explanation(Struct, frozen=True):
    """Settings of an explanation by contributions of the columns.

    `method`: unset, Shapley values (`edl.evaluation.shapley`); of networks also expected gradients
    (`edl.evaluation.expected_gradients`).

    `level` is the model, for the importance of each column over all rows, or each of the rows. `samples` is the
    number of rows that a row is compared with; more make the values more exact and take longer. They are background
    rows of the model, or, with `background`, rows of the query. `rows`: how many of the query's rows are explained, the
    first ones in the pinned order; unset for all.
    """

    level: Literal["model", "rows"] = "model"
    samples: int = 32
    background: Literal["query"] | msgspec.UnsetType = msgspec.UNSET
    rows: int | msgspec.UnsetType = msgspec.UNSET
    method: Method = msgspec.UNSET


class Output(Struct, frozen=True):
    """Destination of results: a model name for train, a table for the others, empty for a result set.

    `column` is the column into which PREDICT, and EXPLAIN of rows, predict, or of several labels what precedes the name
    of each; `keep` lists input columns that are copied to the result. `probabilities`: PREDICT adds a column for each
    class; by default, unless there are many. `extra` names further outputs of the model, see `edl.spec.extra_outputs`.
    `confidence` is the last word of the column with the probability of the predicted class, if it is another one.
    """

    name: str = ""
    column: str = ""
    keep: tuple[str, ...] = ()
    probabilities: bool | None = None
    extra: tuple[str, ...] = ()
    confidence: str | msgspec.UnsetType = msgspec.UNSET


class Interval(Struct, frozen=True):
    """Interval around each predicted number, `margin` to both sides; it is to hold the share `coverage` of the labels.

    With `widths` the margin is of the median row, and that of another row is relative to it. See `edl.spec.residuals`.
    """

    coverage: float
    margin: float
    widths: Widths | msgspec.UnsetType = msgspec.UNSET


class Member(Struct, frozen=True):
    """Model of an ensemble: its share of the ensemble's scores, and the JobSpec of its training.

    With several `folds` it is the mean of as many models of that JobSpec, each of which validated on another part of
    the rows.
    """

    weight: float
    spec: JobSpec
    folds: int = 1


REDUCTION = 3  # candidates of a screening of which one is trained on all rows


class Candidate(Struct, frozen=True):
    """Model that a search may try. `spec.statement` trains it by itself.

    `point`: its place in the search space, for each dimension a number from 0 to 1 or a name.
    """

    name: str
    spec: JobSpec
    point: tuple[float | str, ...] = ()


class Search(Struct, frozen=True):
    """Search for an ensemble of models that predicts the validation rows best.

    The search trains `candidates` until `time_limit`, in seconds, is up; 0 is no limit. It trains at most `trials` of
    them, 0 is all: the first `ordered` ones in their order, and then those that its results make most likely to be
    good. 0 keeps the order of all. With `screening` they are trained on so many of the training rows first, and only
    the best third on all. `metric` of the validation rows chooses at most `max_members` of them. The last `test` rows
    are neither trained nor validated on: the figures of the ensemble are of them, if there are any. With several
    `folds` each candidate is trained as many times, and each time another part of the other rows is its validation
    rows. `refit`: the chosen models are trained once more, on all rows, as far as the time allows.
    """

    candidates: tuple[Candidate, ...]
    metric: str
    time_limit: float = 0.0
    max_members: int = 5
    test: int = 0
    folds: int = 1
    refit: bool = False
    trials: int = 0
    screening: int = 0
    ordered: int = 0

    @property
    def count(self) -> int:
        """Number of trials."""
        return self.trials or len(self.candidates)

    @property
    def turns(self) -> int:
        """Number of trainings of candidates at most, with those on some of the rows."""
        return self.count + (math.ceil(self.count / REDUCTION) if self.screening else 0)


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
    schedule: Component | None = None  # of the learning rate; None: constant
    weights: Weights | None = None  # None: each row counts once
    training: Training = Training()
    evaluation: Evaluation = Evaluation()
    checkpoints: Checkpoints = Checkpoints()
    cluster: Cluster = Cluster()
    output: Output = Output()
    trained_model: str = ""  # name@version of the model in use; TRAIN: of the initial weights
    batch_size: int = BLOCK  # PREDICT, EVALUATE, EXPLAIN: rows of one forward pass
    device: Device = "auto"  # of a network; auto: a GPU if there is one
    precision: Precision = "float32"  # of a network's arithmetic; its weights are float32
    explanation: Explanation | None = None  # of EXPLAIN
    report: Report = "figures"  # of EVALUATE and PREDICT
    interval: Interval | None = None  # of PREDICT
    threshold: float | None = None  # of PREDICT, EVALUATE: from it on the second of two classes
    temperature: float = 1.0  # of PREDICT, EVALUATE, EXPLAIN: divides the logits of classes
    # Of the query's rows; None: the last of the query's order, or a query of their own.
    split: Split | None = None
    validation: Query | None = None  # of the validation rows, unless they are the last rows of the query
    forecast: Forecast | None = None  # series; their rows are examples of the model
    own: Own | None = None
    zoo: Zoo | None = None
    members: tuple[Member, ...] = ()  # of an ensemble
    search: Search | None = None  # for the members of an ensemble
    imported: Imported | msgspec.UnsetType = msgspec.UNSET  # of a model that was trained elsewhere
    edited: bool = False  # model.py differs from the compiler's
    keep_rows: Literal["none"] | msgspec.UnsetType = (
        msgspec.UNSET
    )  # none: no background row is one of the training
    version: int = VERSION

    @property
    def work(self) -> Work:
        """Work of the tasks: explaining a model measures metrics, explaining rows yields a result for each.

        A task of a search is a trial.
        """
        if self.search is not None:
            return "search"
        if self.kind != "explain":
            return self.kind
        return "predict" if self.explanation is not None and self.explanation.level == "rows" else "evaluate"

    @property
    def features(self) -> tuple[Feature, ...]:
        """All features, over all model inputs; of an ensemble or a search, its models' features."""
        of_models = [model.features for model in self.models]
        return tuple(dict.fromkeys(chain.from_iterable((*self.inputs.values(), *of_models))))

    @property
    def folds(self) -> int:
        """Trainings of each model of an ensemble or a search; 1 for other models."""
        numbers = (
            self.search.folds if self.search is not None else 1,
            *(member.folds for member in self.members),
        )
        return max(numbers)

    @property
    def validation_rows(self) -> int:
        """Number of rows that validated a model: one of the folds, or the model itself."""
        return self.rows.scored_rows if self.rows.blocks else self.rows.validation * self.folds

    @property
    def models(self) -> tuple[JobSpec, ...]:
        """JobSpecs of an ensemble's members, or of a search's candidates."""
        candidates = self.search.candidates if self.search is not None else ()
        return (*(member.spec for member in self.members), *(candidate.spec for candidate in candidates))

    @property
    def image(self) -> str:
        """Image that has the user's model; empty for one of this environment."""
        own = next((job.own for job in (self, *self.models) if job.own is not None), None)
        return (own.image or "") if own is not None else ""

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the query that the features read, each once, in order."""
        return tuple(dict.fromkeys(name for feature in self.features for name in source_columns(feature)))


class _Version(msgspec.Struct):
    version: int


def to_json(spec: JobSpec) -> bytes:
    """Return readable, deterministic JSON: the same spec gives the same bytes."""
    return msgspec.json.format(msgspec.json.encode(spec), indent=2) + b"\n"


def from_json(data: bytes | str) -> JobSpec:
    """Return the JobSpec in `data`. Raises SpecError if it has an unknown version or is invalid, with the place."""
    try:
        version = msgspec.json.decode(data, type=_Version).version
        if version != VERSION:
            raise SpecError(
                f"this JobSpec has version {version}; this program reads version {VERSION}",
                hint="update sqlflow-edl, or train the model again",
            )
        return msgspec.json.decode(data, type=JobSpec)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        later = "unknown field" in str(error)
        raise SpecError(
            f"not a JobSpec of sqlflow-edl {PACKAGE}: {error}",
            hint="another version has made it: update sqlflow-edl, or train the model again"
            if later
            else None,
        ) from None

"""Default memory requests of pods, from the size of the job's model and the number of copies."""

from __future__ import annotations

from edl.cluster.kubernetes import quantities
from edl.embeddings.sizes import FLOAT_BYTES, table_memory
from edl.spec import TREES, JobSpec
from edl.worker.input.cache import ROOM
from sqlflow_edl.analysis import model_size

WORKER = 1536 << 20  # bytes of an imported framework and of prefetched rows
SERVER = 512 << 20
STEP = 256 << 20  # requests are multiples of this
COPIES = 3  # of the parameters: current, being written to a checkpoint, and of the best epoch
ACTIVATIONS = 8  # times the inputs of a minibatch
ROW_COPIES = 4  # of the rows of trees: the matrix, that being made, the library's own, margins
SAMPLED = 200_000  # rows from which several workers choose the intervals of numbers
NUMBER_BYTES = 8


def worker(spec: JobSpec) -> str:
    """Return the memory of a worker, as a quantity."""
    held = _parameter_bytes(spec)
    if spec.kind != "train":
        return _format_size(WORKER + held + _minibatch(spec, spec.batch_size))
    if spec.framework in TREES:
        return _format_size(WORKER + _rows_of_trees(spec))
    if spec.cluster.parameter_servers:
        held = max(0, held - table_memory(spec))
    return _format_size(
        WORKER + COPIES * held + _minibatch(spec, spec.training.batch_size) + _cached_bytes(spec)
    )


def server(spec: JobSpec) -> str:
    """Return the memory of a parameter server, as a quantity."""
    held = _parameter_bytes(spec) // max(1, spec.cluster.parameter_servers)
    copies = COPIES * (2 if spec.checkpoints.copies == "neighbours" else 1)
    return _format_size(SERVER + copies * held)


def _parameter_bytes(spec: JobSpec) -> int:
    """Return the bytes of parameters, gradients and slots; of a user-defined model as far as they are known."""
    return max(model_size.memory(spec) or 0, table_memory(spec))


def _minibatch(spec: JobSpec, rows: int) -> int:
    return rows * model_size.input_width(spec) * FLOAT_BYTES * ACTIVATIONS


def _rows_of_trees(spec: JobSpec) -> int:
    """Return the bytes of the rows that a worker holds: its share of the training rows, and all validation rows."""
    workers = max(1, spec.cluster.workers)
    rows = -(-spec.rows.training // workers) + spec.rows.validation
    sample = min(SAMPLED, spec.rows.training) if workers > 1 else 0
    return (ROW_COPIES * rows + 2 * sample) * model_size.input_width(spec) * NUMBER_BYTES


def _cached_bytes(spec: JobSpec) -> int:
    """Return the bytes of rows that are cached for the next epochs."""
    again = spec.training.epochs > 1
    return min(ROOM, spec.rows.training * model_size.input_width(spec) * FLOAT_BYTES) if again else 0


def _format_size(size: int) -> str:
    return quantities.memory(-(-size // STEP) * STEP)

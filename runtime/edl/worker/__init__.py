"""The worker: the one loop that trains, evaluates and predicts, and the task source of a job in one process.

It never imports a framework: adapters of `edl.nn` do.
"""

from edl.worker.events import EpochEnd, Figures, Observer, Progress
from edl.worker.inference import Evaluated, Predicted, evaluate, predict
from edl.worker.loop import JobCancelledError, Worker
from edl.worker.tasks import LocalTasks, Report, Task, TaskSource
from edl.worker.training import Trained, train

__all__ = [
    "EpochEnd",
    "Evaluated",
    "Figures",
    "JobCancelledError",
    "LocalTasks",
    "Observer",
    "Predicted",
    "Progress",
    "Report",
    "Task",
    "TaskSource",
    "Trained",
    "Worker",
    "evaluate",
    "predict",
    "train",
]  # fmt: skip

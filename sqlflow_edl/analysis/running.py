"""How a job runs: with how many workers, when the held-out rows are measured, and where it can go on from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from edl import spec

if TYPE_CHECKING:
    from sqlflow_edl.analysis.train import Settings


def cluster(settings: Settings) -> spec.Cluster:
    return spec.Cluster(workers=_get(settings, "train.num_workers", 0))


def evaluation(settings: Settings) -> spec.Evaluation:
    names = ("steps", "secs", "start_delay_secs", "throttle_secs")
    default = spec.Evaluation()
    return spec.Evaluation(*(_get(settings, f"validation.{name}", getattr(default, name)) for name in names))


def checkpoints(settings: Settings) -> spec.Checkpoints:
    default = spec.Checkpoints()
    return spec.Checkpoints(
        _get(settings, "train.checkpoint_steps", default.steps),
        _get(settings, "train.checkpoint_secs", default.secs),
        _get(settings, "train.keep_checkpoint_max", default.keep),
    )


def _get(settings: Settings, name: str, default: Any) -> Any:
    value = settings.get(name)
    return default if value is None else value

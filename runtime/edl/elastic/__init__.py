"""Elasticity for training loops of scripts: rows under leases, gradients summed over the workers, state from a peer.

    sampler = edl.elastic.sampler(len(data), batch_size=64, epochs=10)
    edl.elastic.checkpoint(model, optimizer)

    @edl.elastic.run
    def train():
        for epoch in sampler.epochs():
            for features, labels in DataLoader(data, batch_sampler=sampler):
                optimizer.zero_grad()
                loss(model(features), labels).backward()
                optimizer.step()

`edl run --workers N script.py` starts the workers; without it the same script trains in one process.

These are the names of `edl.extensions.elastic`, which has all of it.
"""

from edl.extension_loader import name_absence

with name_absence("edl.extensions.elastic"):
    from edl.extensions.elastic import (
        World,
        broadcast,
        checkpoint,
        dataset,
        evaluation,
        leaving,
        on_change,
        on_leave,
        rank,
        run,
        sampler,
        step,
        stream,
        world_size,
    )

__all__ = [
    "World",
    "broadcast",
    "checkpoint",
    "dataset",
    "evaluation",
    "leaving",
    "on_change",
    "on_leave",
    "rank",
    "run",
    "sampler",
    "step",
    "stream",
    "world_size",
]

"""A model that learns from lines while others append them to the files of a folder, which has no end.

python samples/python/stream_elastic.py FOLDER --steps 20               # in this process
edl run --workers 2 samples/python/stream_elastic.py FOLDER --steps 20  # in two
"""

import argparse
from pathlib import Path

import torch

import edl

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=Path)
parser.add_argument("--steps", type=int, default=20)
options = parser.parse_args()


class Lines:
    """Files NAME.csv, each a partition. The offset of a line is its number; a line is complete with its line break."""

    def __init__(self, folder):
        self.folder = folder
        self.ends = {}  # of the known lines of each file, in bytes, after a 0

    def partitions(self):
        return sorted(path.stem for path in self.folder.glob("*.csv"))

    def latest(self, partition):
        ends = self.ends.setdefault(partition, [0])
        with (self.folder / f"{partition}.csv").open("rb") as file:
            file.seek(ends[-1])
            for line in file:
                if line.endswith(b"\n"):
                    ends.append(ends[-1] + len(line))
        return len(ends) - 1

    def read(self, partition, offset, rows):
        self.latest(partition)
        with (self.folder / f"{partition}.csv").open("rb") as file:
            file.seek(self.ends[partition][offset])
            return [[float(value) for value in file.readline().split(b",")] for _ in range(rows)]


model = torch.nn.Linear(2, 1)
torch.nn.init.zeros_(model.weight)
torch.nn.init.zeros_(model.bias)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
stream = edl.elastic.stream(Lines(options.folder), batch_size=16)
edl.elastic.checkpoint(model, optimizer)


@edl.elastic.run
def learn():
    for records in stream:
        rows = torch.tensor(records)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(rows[:, :2]), rows[:, 2:]).backward()
        optimizer.step()
        if edl.elastic.step() >= options.steps:
            return


learn()
if edl.elastic.rank() == 0:  # a later run begins with start=… of these offsets, and with the model
    torch.save({"model": model.state_dict(), "offsets": stream.offsets}, options.folder / "model.pt")
    print(f"weights {model.weight.tolist()[0]} after {edl.elastic.step()} steps, offsets {stream.offsets}")

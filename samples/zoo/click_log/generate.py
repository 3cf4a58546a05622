"""Writes a click log as Parquet: `python samples/zoo/click_log/generate.py FOLDER [--rows N] [--ids N] [--seed N]`.

FOLDER/train.parquet has as many rows as are asked for, FOLDER/test.parquet a tenth of them, of the same log. Columns
c0 … c25 are ids, and label is 1 where somebody clicked. `sqlflow_edl.samples.click_log` says what the clicks
follow from.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from sqlflow_edl.samples.click_log import ClickLog

ROW_GROUP = 8_192  # rows: what a training task reads


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a made-up click log as Parquet.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=2_000_000, help="to train on (default: 2,000,000)")
    parser.add_argument("--ids", type=int, default=100_000, help="of each of the 26 columns")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    log = ClickLog(ids=options.ids, seed=options.seed)
    options.folder.mkdir(parents=True, exist_ok=True)
    for part, (name, rows) in enumerate({"train": options.rows, "test": options.rows // 10}.items()):
        write(options.folder / f"{name}.parquet", log, rows, part)


def write(file: Path, log: ClickLog, rows: int, part: int) -> None:
    with parquet.ParquetWriter(file, log.schema) as writer:
        for batch in log.batches(rows, part):
            writer.write_table(pa.Table.from_batches([batch]), row_group_size=ROW_GROUP)


if __name__ == "__main__":
    main()

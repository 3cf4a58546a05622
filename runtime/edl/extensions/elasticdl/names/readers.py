"""Data readers of ElasticDL: records by shards. `edl.extensions.elasticdl.shard_reader` reads them by row numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Shard:
    """Range [start, end) of the records of a shard."""

    name: str
    start: int
    end: int


@dataclass(frozen=True)
class Task:
    """Records that a reader is asked for, as ElasticDL's newer and older readers name them."""

    shard: Shard

    @property
    def shard_name(self) -> str:
        return self.shard.name

    @property
    def start(self) -> int:
        return self.shard.start

    @property
    def end(self) -> int:
        return self.shard.end


@dataclass
class Metadata:
    """Names and types of columns; None where a record has no columns."""

    column_names: Sequence[str] | None
    column_dtypes: Mapping[str, Any] | None = None


class AbstractDataReader(ABC):
    """Base of a module's own readers."""

    def __init__(self, **options: Any) -> None:
        self.options = options

    @abstractmethod
    def read_records(self, task: Task) -> Iterable[Any]:
        """Yield the records of a range: bytes, or a list of texts, one for each column."""

    @abstractmethod
    def create_shards(self) -> Any:
        """Return (name, first record, number of records) of each shard, or a dict name -> (first, number)."""

    @property
    def records_output_types(self) -> Any:
        return None

    @property
    def metadata(self) -> Metadata:
        return Metadata(None)


class RecordIODataReader(AbstractDataReader):
    """Reader of the RecordIO files of a folder. Here it only names them: the job reads files by itself."""

    def __init__(self, *, data_dir: str, **options: Any) -> None:
        super().__init__(**options)
        self.data_dir = data_dir

    def read_records(self, task: Task) -> Iterable[bytes]:
        raise NotImplementedError("the job reads RecordIO files itself")

    def create_shards(self) -> Any:
        raise NotImplementedError("the job reads RecordIO files itself")


CSVDataReader = TextDataReader = RecordIODataReader

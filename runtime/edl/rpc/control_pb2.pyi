from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TaskType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TASK_TYPE_UNSPECIFIED: _ClassVar[TaskType]
    TRAIN: _ClassVar[TaskType]
    EVALUATE: _ClassVar[TaskType]
    PREDICT: _ClassVar[TaskType]
    CONCLUDE: _ClassVar[TaskType]
    EXPORT: _ClassVar[TaskType]
TASK_TYPE_UNSPECIFIED: TaskType
TRAIN: TaskType
EVALUATE: TaskType
PREDICT: TaskType
CONCLUDE: TaskType
EXPORT: TaskType

class Task(_message.Message):
    __slots__ = ("type", "id", "number", "start", "end", "skip", "lease", "settles", "round")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    SKIP_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    SETTLES_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    type: TaskType
    id: int
    number: int
    start: int
    end: int
    skip: int
    lease: int
    settles: bool
    round: bytes
    def __init__(self, type: _Optional[_Union[TaskType, str]] = ..., id: _Optional[int] = ..., number: _Optional[int] = ..., start: _Optional[int] = ..., end: _Optional[int] = ..., skip: _Optional[int] = ..., lease: _Optional[int] = ..., settles: bool = ..., round: _Optional[bytes] = ...) -> None: ...

class RegisterRequest(_message.Message):
    __slots__ = ("instance", "incarnation", "metric_kinds", "role", "address")
    class MetricKindsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    METRIC_KINDS_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    instance: str
    incarnation: int
    metric_kinds: _containers.ScalarMap[str, str]
    role: str
    address: str
    def __init__(self, instance: _Optional[str] = ..., incarnation: _Optional[int] = ..., metric_kinds: _Optional[_Mapping[str, str]] = ..., role: _Optional[str] = ..., address: _Optional[str] = ...) -> None: ...

class Servers(_message.Message):
    __slots__ = ("number", "generation", "addresses", "ready")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    number: int
    generation: int
    addresses: _containers.RepeatedScalarFieldContainer[str]
    ready: bool
    def __init__(self, number: _Optional[int] = ..., generation: _Optional[int] = ..., addresses: _Optional[_Iterable[str]] = ..., ready: bool = ...) -> None: ...

class Registration(_message.Message):
    __slots__ = ("refused", "master_epoch", "generation", "lease_secs", "heartbeat_secs", "resume", "finished", "servers")
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    MASTER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    LEASE_SECS_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_SECS_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    SERVERS_FIELD_NUMBER: _ClassVar[int]
    refused: bool
    master_epoch: int
    generation: int
    lease_secs: float
    heartbeat_secs: float
    resume: str
    finished: bool
    servers: Servers
    def __init__(self, refused: bool = ..., master_epoch: _Optional[int] = ..., generation: _Optional[int] = ..., lease_secs: _Optional[float] = ..., heartbeat_secs: _Optional[float] = ..., resume: _Optional[str] = ..., finished: bool = ..., servers: _Optional[_Union[Servers, _Mapping]] = ...) -> None: ...

class Error(_message.Message):
    __slots__ = ("code", "message", "hint", "traceback")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    HINT_FIELD_NUMBER: _ClassVar[int]
    TRACEBACK_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    hint: str
    traceback: str
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ..., hint: _Optional[str] = ..., traceback: _Optional[str] = ...) -> None: ...

class Report(_message.Message):
    __slots__ = ("sequence", "kind", "task", "rows", "steps", "loss", "weight", "states", "conclusion", "error", "fatal", "folder")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        DONE: _ClassVar[Report.Kind]
        GIVEN_BACK: _ClassVar[Report.Kind]
        FAILED: _ClassVar[Report.Kind]
        CHECKPOINT: _ClassVar[Report.Kind]
        CHECKPOINT_WRITTEN: _ClassVar[Report.Kind]
    DONE: Report.Kind
    GIVEN_BACK: Report.Kind
    FAILED: Report.Kind
    CHECKPOINT: Report.Kind
    CHECKPOINT_WRITTEN: Report.Kind
    class StatesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    CONCLUSION_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    FATAL_FIELD_NUMBER: _ClassVar[int]
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    kind: Report.Kind
    task: Task
    rows: int
    steps: int
    loss: float
    weight: float
    states: _containers.ScalarMap[str, bytes]
    conclusion: bytes
    error: Error
    fatal: bool
    folder: str
    def __init__(self, sequence: _Optional[int] = ..., kind: _Optional[_Union[Report.Kind, str]] = ..., task: _Optional[_Union[Task, _Mapping]] = ..., rows: _Optional[int] = ..., steps: _Optional[int] = ..., loss: _Optional[float] = ..., weight: _Optional[float] = ..., states: _Optional[_Mapping[str, bytes]] = ..., conclusion: _Optional[bytes] = ..., error: _Optional[_Union[Error, _Mapping]] = ..., fatal: bool = ..., folder: _Optional[str] = ...) -> None: ...

class Held(_message.Message):
    __slots__ = ("task", "rows", "steps", "loss", "weight")
    TASK_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    task: Task
    rows: int
    steps: int
    loss: float
    weight: float
    def __init__(self, task: _Optional[_Union[Task, _Mapping]] = ..., rows: _Optional[int] = ..., steps: _Optional[int] = ..., loss: _Optional[float] = ..., weight: _Optional[float] = ...) -> None: ...

class TaskRun(_message.Message):
    __slots__ = ("type", "number", "id", "lease", "count", "skip")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    SKIP_FIELD_NUMBER: _ClassVar[int]
    type: TaskType
    number: int
    id: int
    lease: int
    count: int
    skip: int
    def __init__(self, type: _Optional[_Union[TaskType, str]] = ..., number: _Optional[int] = ..., id: _Optional[int] = ..., lease: _Optional[int] = ..., count: _Optional[int] = ..., skip: _Optional[int] = ...) -> None: ...

class ExchangeRequest(_message.Message):
    __slots__ = ("instance", "incarnation", "generation", "reports", "held", "want", "known", "wait_secs", "seen_upto", "servers", "number", "group", "join", "obstacle", "waiting", "idle", "open_epoch")
    class WantEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: int
        def __init__(self, key: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    WANT_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    WAIT_SECS_FIELD_NUMBER: _ClassVar[int]
    SEEN_UPTO_FIELD_NUMBER: _ClassVar[int]
    SERVERS_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    JOIN_FIELD_NUMBER: _ClassVar[int]
    OBSTACLE_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    IDLE_FIELD_NUMBER: _ClassVar[int]
    OPEN_EPOCH_FIELD_NUMBER: _ClassVar[int]
    instance: str
    incarnation: int
    generation: int
    reports: _containers.RepeatedCompositeFieldContainer[Report]
    held: _containers.RepeatedCompositeFieldContainer[Held]
    want: _containers.ScalarMap[int, int]
    known: int
    wait_secs: float
    seen_upto: int
    servers: int
    number: int
    group: int
    join: JoinRequest
    obstacle: str
    waiting: _containers.RepeatedCompositeFieldContainer[TaskRun]
    idle: _containers.RepeatedScalarFieldContainer[TaskType]
    open_epoch: int
    def __init__(self, instance: _Optional[str] = ..., incarnation: _Optional[int] = ..., generation: _Optional[int] = ..., reports: _Optional[_Iterable[_Union[Report, _Mapping]]] = ..., held: _Optional[_Iterable[_Union[Held, _Mapping]]] = ..., want: _Optional[_Mapping[int, int]] = ..., known: _Optional[int] = ..., wait_secs: _Optional[float] = ..., seen_upto: _Optional[int] = ..., servers: _Optional[int] = ..., number: _Optional[int] = ..., group: _Optional[int] = ..., join: _Optional[_Union[JoinRequest, _Mapping]] = ..., obstacle: _Optional[str] = ..., waiting: _Optional[_Iterable[_Union[TaskRun, _Mapping]]] = ..., idle: _Optional[_Iterable[_Union[TaskType, str]]] = ..., open_epoch: _Optional[int] = ...) -> None: ...

class JoinRequest(_message.Message):
    __slots__ = ("address", "after", "without")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_FIELD_NUMBER: _ClassVar[int]
    address: str
    after: int
    without: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, address: _Optional[str] = ..., after: _Optional[int] = ..., without: _Optional[_Iterable[str]] = ...) -> None: ...

class WorkerGroup(_message.Message):
    __slots__ = ("number", "members", "holders", "address", "addresses")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    number: int
    members: _containers.RepeatedScalarFieldContainer[str]
    holders: int
    address: str
    addresses: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, number: _Optional[int] = ..., members: _Optional[_Iterable[str]] = ..., holders: _Optional[int] = ..., address: _Optional[str] = ..., addresses: _Optional[_Iterable[str]] = ...) -> None: ...

class ExchangeResponse(_message.Message):
    __slots__ = ("master_epoch", "tasks", "revoked", "flags", "seen_upto", "durable_upto", "servers", "group", "asked", "open_epoch", "certain_epoch")
    class Flag(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NONE: _ClassVar[ExchangeResponse.Flag]
        PENDING: _ClassVar[ExchangeResponse.Flag]
        STOPPED: _ClassVar[ExchangeResponse.Flag]
        TRAIN_OVER: _ClassVar[ExchangeResponse.Flag]
        PREDICT_OVER: _ClassVar[ExchangeResponse.Flag]
        FINISHED: _ClassVar[ExchangeResponse.Flag]
        REJOIN: _ClassVar[ExchangeResponse.Flag]
        DRY: _ClassVar[ExchangeResponse.Flag]
        TAKE_OVER: _ClassVar[ExchangeResponse.Flag]
        REGROUP: _ClassVar[ExchangeResponse.Flag]
        MEASURING: _ClassVar[ExchangeResponse.Flag]
        HUNG: _ClassVar[ExchangeResponse.Flag]
        SOUGHT: _ClassVar[ExchangeResponse.Flag]
    NONE: ExchangeResponse.Flag
    PENDING: ExchangeResponse.Flag
    STOPPED: ExchangeResponse.Flag
    TRAIN_OVER: ExchangeResponse.Flag
    PREDICT_OVER: ExchangeResponse.Flag
    FINISHED: ExchangeResponse.Flag
    REJOIN: ExchangeResponse.Flag
    DRY: ExchangeResponse.Flag
    TAKE_OVER: ExchangeResponse.Flag
    REGROUP: ExchangeResponse.Flag
    MEASURING: ExchangeResponse.Flag
    HUNG: ExchangeResponse.Flag
    SOUGHT: ExchangeResponse.Flag
    MASTER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    REVOKED_FIELD_NUMBER: _ClassVar[int]
    FLAGS_FIELD_NUMBER: _ClassVar[int]
    SEEN_UPTO_FIELD_NUMBER: _ClassVar[int]
    DURABLE_UPTO_FIELD_NUMBER: _ClassVar[int]
    SERVERS_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    OPEN_EPOCH_FIELD_NUMBER: _ClassVar[int]
    CERTAIN_EPOCH_FIELD_NUMBER: _ClassVar[int]
    master_epoch: int
    tasks: _containers.RepeatedCompositeFieldContainer[Task]
    revoked: _containers.RepeatedScalarFieldContainer[int]
    flags: int
    seen_upto: int
    durable_upto: int
    servers: Servers
    group: WorkerGroup
    asked: _containers.RepeatedScalarFieldContainer[int]
    open_epoch: int
    certain_epoch: int
    def __init__(self, master_epoch: _Optional[int] = ..., tasks: _Optional[_Iterable[_Union[Task, _Mapping]]] = ..., revoked: _Optional[_Iterable[int]] = ..., flags: _Optional[int] = ..., seen_upto: _Optional[int] = ..., durable_upto: _Optional[int] = ..., servers: _Optional[_Union[Servers, _Mapping]] = ..., group: _Optional[_Union[WorkerGroup, _Mapping]] = ..., asked: _Optional[_Iterable[int]] = ..., open_epoch: _Optional[int] = ..., certain_epoch: _Optional[int] = ...) -> None: ...

class JobStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class JobStatusResponse(_message.Message):
    __slots__ = ("snapshot",)
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    snapshot: bytes
    def __init__(self, snapshot: _Optional[bytes] = ...) -> None: ...

class CancelRequest(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class CancelResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ScaleRequest(_message.Message):
    __slots__ = ("workers", "servers")
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    SERVERS_FIELD_NUMBER: _ClassVar[int]
    workers: int
    servers: int
    def __init__(self, workers: _Optional[int] = ..., servers: _Optional[int] = ...) -> None: ...

class ScaleResponse(_message.Message):
    __slots__ = ("workers", "before", "servers_before")
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    SERVERS_BEFORE_FIELD_NUMBER: _ClassVar[int]
    workers: int
    before: int
    servers_before: int
    def __init__(self, workers: _Optional[int] = ..., before: _Optional[int] = ..., servers_before: _Optional[int] = ...) -> None: ...

class PauseRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PauseResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class KeepRequest(_message.Message):
    __slots__ = ("name", "file", "size", "crc", "start", "data")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    CRC_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    name: str
    file: str
    size: int
    crc: int
    start: int
    data: bytes
    def __init__(self, name: _Optional[str] = ..., file: _Optional[str] = ..., size: _Optional[int] = ..., crc: _Optional[int] = ..., start: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class KeepResponse(_message.Message):
    __slots__ = ("upto", "refused")
    UPTO_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    upto: int
    refused: str
    def __init__(self, upto: _Optional[int] = ..., refused: _Optional[str] = ...) -> None: ...

class FetchRequest(_message.Message):
    __slots__ = ("name", "file", "start")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    name: str
    file: str
    start: int
    def __init__(self, name: _Optional[str] = ..., file: _Optional[str] = ..., start: _Optional[int] = ...) -> None: ...

class FetchResponse(_message.Message):
    __slots__ = ("gone", "data", "size", "crc")
    GONE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    CRC_FIELD_NUMBER: _ClassVar[int]
    gone: bool
    data: bytes
    size: int
    crc: int
    def __init__(self, gone: bool = ..., data: _Optional[bytes] = ..., size: _Optional[int] = ..., crc: _Optional[int] = ...) -> None: ...

class ListKeptRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListKeptResponse(_message.Message):
    __slots__ = ("folders",)
    class Folder(_message.Message):
        __slots__ = ("name", "files")
        NAME_FIELD_NUMBER: _ClassVar[int]
        FILES_FIELD_NUMBER: _ClassVar[int]
        name: str
        files: _containers.RepeatedScalarFieldContainer[str]
        def __init__(self, name: _Optional[str] = ..., files: _Optional[_Iterable[str]] = ...) -> None: ...
    FOLDERS_FIELD_NUMBER: _ClassVar[int]
    folders: _containers.RepeatedCompositeFieldContainer[ListKeptResponse.Folder]
    def __init__(self, folders: _Optional[_Iterable[_Union[ListKeptResponse.Folder, _Mapping]]] = ...) -> None: ...

class DiscardRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class DiscardResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

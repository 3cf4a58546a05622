"""Conversion of the exchange with the master to protobuf messages and back."""

from __future__ import annotations

from edl.jobs.failure import Failed
from edl.metrics import dump, load
from edl.metrics.states import State
from edl.rpc import control_pb2 as pb
from edl.tasks.encoding import decode, encode
from edl.tasks.protocol import (
    Answer,
    Flag,
    Joined,
    JoinRequest,
    Request,
    Servers,
    TaskRun,
    TaskUpdate,
    UpdateKind,
    WorkerGroup,
)
from edl.tasks.task import Conclusion, Report, Round, Task, TaskType

_TYPES: dict[TaskType, pb.TaskType] = {
    "train": pb.TRAIN,
    "evaluate": pb.EVALUATE,
    "predict": pb.PREDICT,
    "conclude": pb.CONCLUDE,
    "export": pb.EXPORT,
}
_NAMES: dict[int, TaskType] = {number: name for name, number in _TYPES.items()}

_KINDS: dict[UpdateKind, pb.Report.Kind] = {
    "done": pb.Report.DONE,
    "given back": pb.Report.GIVEN_BACK,
    "failed": pb.Report.FAILED,
    "checkpoint": pb.Report.CHECKPOINT,
    "checkpoint written": pb.Report.CHECKPOINT_WRITTEN,
}
_KIND_NAMES: dict[int, UpdateKind] = {number: name for name, number in _KINDS.items()}


def task_to(task: Task, *, whole: bool = True) -> pb.Task:
    """Encode a task. `whole` includes fields that only the worker needs."""
    return pb.Task(
        type=_TYPES[task.type],
        id=task.id,
        number=task.number,
        start=task.start,
        end=task.end,
        skip=task.skip,
        lease=task.attempt,
        settles=task.settles,
        round=encode(task.round) if whole and task.round is not None else b"",
    )


def task_from(message: pb.Task) -> Task:
    """Decode a task. Raises SpecError if its content is damaged."""
    return Task(
        message.id,
        _NAMES[message.type],
        message.start,
        message.end,
        message.number,
        message.skip,
        message.lease,
        message.settles,
        decode(message.round, Round) if message.round else None,
    )


def request_to(request: Request, wait_secs: float, known: Flag) -> pb.ExchangeRequest:
    """Encode a request. `wait_secs` is the longest wait for an answer that differs from `known`."""
    return pb.ExchangeRequest(
        instance=request.instance,
        incarnation=request.incarnation,
        generation=request.generation,
        reports=map(_update_to, request.updates),
        held=[
            pb.Held(
                task=task_to(held.task, whole=False),
                rows=held.rows,
                steps=held.steps,
                loss=held.loss,
                weight=held.weight,
            )
            for held in request.held
        ],
        want={_TYPES[kind]: count for kind, count in request.want.items()},
        known=known,
        wait_secs=wait_secs,
        seen_upto=request.seen_upto,
        servers=request.servers,
        number=request.number,
        group=request.group,
        join=_join_to(request.join),
        obstacle=request.obstacle,
        waiting=map(_run_to, request.waiting),
        idle=[_TYPES[kind] for kind in request.idle],
        open_epoch=request.open_epoch,
    )


def request_from(message: pb.ExchangeRequest) -> Request:
    return Request(
        message.instance,
        message.incarnation,
        message.generation,
        tuple(map(_update_from, message.reports)),
        tuple(
            Report(task_from(held.task), held.rows, held.steps, held.loss, held.weight)
            for held in message.held
        ),
        {_NAMES[kind]: count for kind, count in message.want.items()},
        message.seen_upto,
        message.servers,
        message.number,
        message.group,
        _join_from(message),
        message.obstacle,
        tuple(map(_run_from, message.waiting)),
        tuple(_NAMES[kind] for kind in message.idle),
        message.open_epoch,
    )


def answer_to(answer: Answer) -> pb.ExchangeResponse:
    return pb.ExchangeResponse(
        master_epoch=answer.master_epoch,
        tasks=map(task_to, answer.tasks),
        revoked=answer.revoked,
        flags=answer.flags,
        seen_upto=answer.seen_upto,
        durable_upto=answer.durable_upto,
        servers=_servers_to(answer.servers),
        group=_group_to(answer.group),
        asked=answer.asked,
        open_epoch=answer.open_epoch,
        certain_epoch=answer.certain_epoch,
    )


def answer_from(message: pb.ExchangeResponse) -> Answer:
    return Answer(
        message.master_epoch,
        tuple(map(task_from, message.tasks)),
        tuple(message.revoked),
        Flag(message.flags),
        message.seen_upto,
        message.durable_upto,
        _servers_from(message),
        _group_from(message),
        tuple(message.asked),
        message.open_epoch,
        message.certain_epoch,
    )


def joined_to(joined: Joined | None) -> pb.Registration:
    if joined is None:
        return pb.Registration(refused=True)
    return pb.Registration(
        master_epoch=joined.master_epoch,
        generation=joined.generation,
        lease_secs=joined.lease_secs,
        heartbeat_secs=joined.heartbeat_secs,
        resume=joined.resume,
        finished=joined.finished,
        servers=_servers_to(joined.servers),
    )


def joined_from(message: pb.Registration) -> Joined | None:
    """Decode a registration; return None if it was refused."""
    if message.refused:
        return None
    return Joined(
        message.master_epoch,
        message.generation,
        message.lease_secs,
        message.heartbeat_secs,
        message.resume,
        message.finished,
        _servers_from(message),
    )


def _run_to(run: TaskRun) -> pb.TaskRun:
    return pb.TaskRun(
        type=_TYPES[run.type],
        number=run.number,
        id=run.id,
        lease=run.attempt,
        count=run.count,
        skip=run.skip,
    )


def _run_from(message: pb.TaskRun) -> TaskRun:
    return TaskRun(
        _NAMES[message.type], message.number, message.id, message.lease, message.count, message.skip
    )


def _servers_to(servers: Servers | None) -> pb.Servers | None:
    if servers is None:
        return None
    return pb.Servers(
        number=servers.number, generation=servers.generation, addresses=servers.addresses, ready=servers.ready
    )


def _servers_from(message: pb.ExchangeResponse | pb.Registration) -> Servers | None:
    if not message.HasField("servers"):
        return None
    servers = message.servers
    return Servers(servers.number, servers.generation, tuple(servers.addresses), servers.ready)


def _join_to(join: JoinRequest | None) -> pb.JoinRequest | None:
    if join is None:
        return None
    return pb.JoinRequest(address=join.address, after=join.after, without=join.without)


def _join_from(message: pb.ExchangeRequest) -> JoinRequest | None:
    if not message.HasField("join"):
        return None
    return JoinRequest(message.join.address, message.join.after, tuple(message.join.without))


def _group_to(group: WorkerGroup | None) -> pb.WorkerGroup | None:
    if group is None:
        return None
    told, message = _last_group[0]
    if told is not group:
        message = _new_group_to(group)
        _last_group[0] = group, message
    return message


# All members are told of the same group, and a large one has thousands.
_last_group: list[tuple[WorkerGroup | None, pb.WorkerGroup | None]] = [(None, None)]


def _new_group_to(group: WorkerGroup) -> pb.WorkerGroup:
    return pb.WorkerGroup(
        number=group.number,
        members=group.members,
        holders=group.holders,
        address=group.address,
        addresses=group.addresses,
    )


def _group_from(message: pb.ExchangeResponse) -> WorkerGroup | None:
    if not message.HasField("group"):
        return None
    group = message.group
    return WorkerGroup(
        group.number, tuple(group.members), group.holders, group.address, tuple(group.addresses)
    )


def _error_to(failed: Failed) -> pb.Error:
    return pb.Error(
        code=failed.code, message=failed.message, hint=failed.hint or "", traceback=failed.traceback
    )


def _error_from(error: pb.Error) -> Failed:
    return Failed(error.code, error.message, error.hint or None, error.traceback)


def _update_to(update: TaskUpdate) -> pb.Report:
    report = update.report
    return pb.Report(
        sequence=update.sequence,
        kind=_KINDS[update.kind],
        task=task_to(report.task, whole=False),
        rows=report.rows,
        steps=report.steps,
        loss=report.loss,
        weight=report.weight,
        states={name: dump(state) for name, state in report.states.items()},
        conclusion=encode(report.conclusion) if report.conclusion is not None else b"",
        error=_error_to(update.error) if update.error else None,
        fatal=update.fatal,
        folder=update.folder,
    )


def _update_from(message: pb.Report) -> TaskUpdate:
    states: dict[str, State] = {name: load(state) for name, state in message.states.items()}
    report = Report(
        task_from(message.task),
        message.rows,
        message.steps,
        message.loss,
        message.weight,
        states,
        decode(message.conclusion, Conclusion) if message.conclusion else None,
    )
    kind = _KIND_NAMES[message.kind]
    failed = _error_from(message.error) if message.HasField("error") else None
    return TaskUpdate(message.sequence, kind, report, failed, message.fatal, message.folder)

"""Status of a job: events for followers, snapshots for readers, and the peers that workers do not reach."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from edl import exit_codes
from edl.cluster import Change
from edl.errors import JobError
from edl.jobs.events import PHASES, EpochEnd, Phase, Progress, Tally, TrialEnd
from edl.jobs.failure import Failed
from edl.jobs.outcome import JobCancelledError, Outcome
from edl.jobs.snapshot import WAITING, Row, ServerCounts, Snapshot
from edl.master.backend import Backend, End
from edl.master.instances.instance_manager import InstanceManager
from edl.master.instances.stragglers import Loads
from edl.master.pace import SECS, Pace
from edl.master.ps.ps_manager import Servers
from edl.master.reporting.tensorboard import Curves
from edl.master.tasks import progress
from edl.master.tasks.task_manager import TaskManager
from edl.spec import JobSpec
from edl.tasks.rate import RecentRate

SNAPSHOT_SECS = 1.0  # shortest interval of snapshots


class StatusReporter:
    """Publishes the state of one job and its instances."""

    def __init__(
        self,
        spec: JobSpec,
        tasks: TaskManager,
        instances: InstanceManager,
        backend: Backend,
        curves: Curves,
        servers: Servers | None = None,
        obstacles: Obstacles | None = None,
    ) -> None:
        self._spec = spec
        self._tasks = tasks
        self._instances = instances
        self._backend = backend
        self._curves = curves
        self._servers = servers
        self._loads = Loads(tasks, servers)
        self._obstacles = obstacles or Obstacles(tasks.log)
        self._started = datetime.now(UTC).isoformat(timespec="seconds")
        self._published_at = self._written_at = -1.0
        self._events_due, self._snapshots_due = Pace(), Pace(10 * SECS)
        self._tally: Tally | None = None
        self._rate: RecentRate | None = None  # set with the first rows of this master
        self._rows_before = progress.rows(tasks)  # trained or predicted under earlier masters
        self._rows = 0  # at the last event
        self.scaling = ""  # last decision on an automatic number of workers
        self.keeping = False  # a stopped job counts as paused once its checkpoint is kept
        self._seconds = 0.0

    def publish(self, now: float) -> None:
        """Publish news, at the backend's interval."""
        for news in self._take_news():
            self._backend.events.write(news)
            if isinstance(news, EpochEnd):
                self._curves.epoch_end(news)
        instances = len(self._instances)
        if now - self._published_at < self._backend.interval or not self._events_due.is_due(now, instances):
            return
        self._published_at = now
        tally = self._count()
        if tally != self._tally:
            self._tally = tally
            self._backend.events.write(tally)
        self._publish_progress(now)
        if now - self._written_at >= SNAPSHOT_SECS and self._snapshots_due.is_due(now, instances):
            self._written_at = now
            self._loads.look(now)
            self._write()

    @property
    def outcome(self) -> End:
        """Outcome of a finished job."""
        state = self._tasks.state
        if state.failed:
            return state.failed
        if state.cancelled:
            return Failed(JobCancelledError.code, state.cancelled)
        updates, rows = self._losses
        notes = self._instances.notes
        torn, torn_rows = self._servers.torn if self._servers is not None else (0, 0)
        if updates > torn:
            notes += (_describe_losses(updates - torn, rows - torn_rows, self._steps),)
        if torn:
            notes += (_describe_torn(torn, torn_rows),)
        return msgspec.structs.replace(self._outcome(), notes=notes, lost_updates=updates, lost_rows=rows)

    @property
    def _losses(self) -> tuple[int, int]:
        return self._servers.losses if self._servers is not None else (0, 0)

    @property
    def _counts(self) -> ServerCounts:
        return self._servers.counts if self._servers is not None else ServerCounts()

    @property
    def _steps(self) -> int:
        """Updates of all servers so far."""
        return self._tasks.job.state.step * len(self._servers or ()) // self._spec.cluster.local_steps

    def end(self, end: End) -> int:
        """Publish the outcome, and return the master's exit code."""
        self._write()
        self._curves.close()
        self._backend.events.write(end)
        self._backend.show_end(end)
        return exit_codes.OK if isinstance(end, Outcome) else exit_codes.JOB_FAILED

    def snapshot_bytes(self) -> bytes:
        return msgspec.msgpack.encode(self.snapshot())

    def snapshot(self) -> Snapshot:
        tasks = self._tasks
        group = tasks.state.rendezvous.present
        lost_updates, lost_rows = self._losses
        waiting = set(self._instances.waiting)
        return Snapshot(
            started=self._started,
            updated=datetime.now(UTC).isoformat(timespec="milliseconds"),
            tasks=progress.counts(tasks),
            epoch=0 if tasks.plan.is_endless else tasks.job.current_epoch,
            epochs=self._spec.training.epochs
            if self._spec.work == "train" and not tasks.plan.is_endless
            else 0,
            rows=progress.rows(tasks),
            step=progress.sum_epochs(tasks).steps,
            loss=progress.loss(tasks),
            rate=self._loads.job_rate,
            instances=tuple(
                self._row(change, relaunches, name, waits=name in waiting)
                for name, (change, relaunches) in sorted(self._instances.slots.items())
            ),
            generation=tasks.state.generation,
            master_relaunches=tasks.state.epoch - 1,
            checkpoint=tasks.state.checkpoint_name,
            group=group.number if group is not None else 0,
            members=group.members if group is not None else (),
            lost_updates=lost_updates,
            lost_rows=lost_rows,
            counts=self._counts,
            workers=self._instances.wanted,
            paused=self._instances.kept == "none" and not self.keeping,
            kept=bool(tasks.state.checkpoint_name) and tasks.state.kept == tasks.state.checkpoint_name,
            servers=len(self._servers or ()),
            wanted_servers=self._servers.target_count if self._servers is not None else 0,
            server_change=self._servers.change_under_way if self._servers is not None else "",
            phase=self._phase,
            total=self._total,
            seconds=self._search_seconds,
            limit=self._search_limit,
            scaling=self.scaling,
        )

    def _write(self) -> None:
        snapshot = self.snapshot()
        self._backend.show(snapshot)
        self._curves.point(snapshot)

    # Parts --------------------------------------------------------------------------------------------------

    def _take_news(self) -> list[EpochEnd | TrialEnd]:
        news, self._tasks.news = self._tasks.news, []
        return news

    def _count(self) -> Tally:
        counts = progress.counts(self._tasks).values()
        slots = self._instances.slots
        relaunches = sum(relaunches for _, relaunches in slots.values())
        return Tally(
            sum(count.todo for count in counts),
            sum(count.doing for count in counts),
            sum(count.done for count in counts),
            self._instances.running,
            relaunches + self._tasks.state.epoch - 1,
            len(self._instances.waiting),
            self._instances.starting_count,
            sum(bool(self._obstacle(change, name)) for name, (change, _) in slots.items()),
            self.scaling,
        )

    def _publish_progress(self, now: float) -> None:
        job, training = self._tasks.job, self._spec.training
        rows, kind, seconds = progress.rows(self._tasks), self._spec.work, self._search_seconds
        if rows == self._rows and int(seconds) == int(self._seconds):
            return
        self._seconds = seconds
        if self._rate is None and rows != self._rows_before:  # the wait for workers before does not count
            self._rate = RecentRate(now, rows)
        if self._rate is not None:
            self._rate.add(now, rows)
        self._rows = rows
        epochs = training.epochs if kind == "train" else 0
        self._backend.events.write(
            Progress(
                self._phase,
                rows,
                self._total,
                self._rate.per_second if self._rate is not None else 0.0,
                job.current_epoch,
                epochs,
                job.state.step,
                progress.loss(self._tasks),
                training.early_stopping > 0,
                seconds,
                self._search_limit,
            )
        )

    @property
    def _phase(self) -> Phase:
        return "search" if self._spec.work == "search" else PHASES[self._spec.kind]

    @property
    def _total(self) -> int:
        """Rows of all epochs, at most; of a search its candidates."""
        training, rows = self._spec.training, self._tasks.plan.rows
        if self._spec.work != "train":
            return rows
        total = rows * training.epochs
        return min(total, training.max_steps * training.batch_size) if training.max_steps else total

    @property
    def _search_limit(self) -> float:
        return self._spec.search.time_limit if self._spec.search is not None else 0.0

    @property
    def _search_seconds(self) -> float:
        return min(self._tasks.state.seconds, self._search_limit)

    def _row(self, change: Change, relaunches: int, name: str, *, waits: bool) -> Row:
        tasks = self._tasks
        held = tasks.oldest_lease(name)
        task = f"{held.type} task {held.id}" if held else ""
        instance = change.instance
        standing = tasks.rendezvous.standing(name, tasks.state.seconds) or self._loads.note(instance.name)
        ending = self._instances.ending(name)
        obstacle = self._obstacle(change, name)
        return Row(
            name,
            "ps" if name.startswith("ps-") else instance.role,
            instance.incarnation,
            WAITING if waits else change.state,
            change.place,
            self._servers.address(instance.name) if self._servers else "",
            relaunches,
            task if change.state != "ended" else "",
            self._loads.rate(name),
            self._loads.load(instance.name),
            "; ".join(filter(None, (obstacle, standing, ending))),
        )

    def _obstacle(self, change: Change, name: str) -> str:
        """Describe what the instance of a name does not reach; empty if nothing."""
        if change.state != "running":
            return ""
        return self._instances.cut_off(name) or self._obstacles.of(*change.instance.key)

    def _outcome(self) -> Outcome:
        outcome = self._tasks.job.state.outcome
        if outcome is not None:
            return outcome
        if self._spec.work != "predict":
            raise JobError("the job ended without an outcome")
        plan = self._tasks.plan
        return Outcome(self._spec.kind, plan.rows, self._tasks.state.seconds, tasks=plan.parts)


def _describe_losses(updates: int, rows: int, of: int) -> str:
    """Describe updates that lost servers had applied; `of` is the number of all."""
    share = f" ({updates / of:.2%} of all)" if of else ""
    return (
        f"parameter servers that were lost had applied {updates:,} update{'' if updates == 1 else 's'} of {rows:,} rows"
        f"{share} since their last checkpoint, which the model lacks; train.durable_updates keeps them, and smaller "
        "values of train.checkpoint_secs and train.checkpoint_steps bound such losses"
    )


def _describe_torn(updates: int, rows: int) -> str:
    """Describe updates that some servers have, of workers that ended while they sent them."""
    pushed = f"{updates:,} update{'' if updates == 1 else 's'} of {rows:,} rows"
    some = "some of the parameter servers only; these rows are not trained again"
    return f"workers that ended had pushed {pushed} to {some}"


class Obstacles:
    """Last report of each worker. `log` gets each new one, with `advice`."""

    def __init__(self, log: Callable[[str], object], advice: str = "") -> None:
        self._log = log
        self._advice = advice
        self._found: dict[str, tuple[int, str]] = {}

    def on_heard(self, name: str, incarnation: int, text: str) -> None:
        """Record the report of a worker, empty if it reaches all peers."""
        before = self.of(name, incarnation)
        self._found[name] = (incarnation, text)
        if text and text != before:
            self._log("; ".join(filter(None, (f"{name} {text}", self._advice))))
        elif before and not text:
            is_source = before.startswith("does not reach the data source")
            self._log(f"{name} reaches {'the data source' if is_source else 'its peers'} again")

    def of(self, name: str, incarnation: int) -> str:
        """Return the report of an instance; empty if there is none of this incarnation."""
        record = self._found.get(name)
        return record[1] if record is not None and record[0] == incarnation else ""

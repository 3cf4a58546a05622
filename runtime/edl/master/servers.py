"""The parameter servers of a job: who has which place, what is to be said to them, and what follows from a loss.

A pure state machine: `calls` are made by who asks for them (`edl.master.serving`), and their answers handed in.

    started by the crew ─▶ registered ─▶ arranged ─▶ open: pulls and pushes are answered

A place is found by its index; its `life` counts the processes that had it. Where the cluster has no room for a server,
a worker stands in: it gives back what it has and becomes one, in the same process and under its own name. Workers are
told where the servers are once every one of them is arranged with the addresses of all.

One that is lost in `async` is replaced alone, from the last complete cut. In `sync`, when all are lost at once, or when
there is no cut yet, parameters and tasks go back together (`Leases.go_back`), and every server is arranged anew, of the
next generation. A cut in memory is no cut any more when two neighbours are lost.
"""

from __future__ import annotations

from collections.abc import Sequence

from edl.errors import SQLFlowError
from edl.master.cuts import Cuts
from edl.master.kept import Place
from edl.master.leases import Leases
from edl.master.seats import Answer, Call, Header, Seat
from edl.ps.channel import GenerationError, NotReadyError
from edl.ps.messages import (
    Arrange,
    Cut,
    CutTaken,
    Figures,
    Mode,
    Progress,
    Revoke,
    Revoked,
    Status,
)
from edl.rpc.channel import AwayError
from edl.tasks import exchange
from edl.tasks.exchange import Joined
from edl.tasks.failed import to_failed

STATUS_SECS = 1.0  # between two looks at a server
HASTY_SECS = 0.2  # while something waits for what it says
RETRY_SECS = 0.2  # until a call is made again that was not answered
LONG_SECS = 600.0  # that a server has to restore, or to come to a cut; whether it lives, its status tells
_NUMBER = 20  # lower bits of the number of a list of servers; above them is the epoch of the master


class Servers:
    """Of one job."""

    def __init__(self, leases: Leases, mode: Mode, count: int, cuts: Cuts) -> None:
        self._leases = leases
        self._mode = mode
        self.cuts = cuts
        kept = leases.kept
        if len(kept.servers) != count:
            self._begin_with(count)
        self._seats = [Seat(kept.seconds, holds=bool(place.address)) for place in kept.servers]
        self._number = kept.epoch << _NUMBER
        self._ticked = kept.seconds
        self._publish()
        if cuts.in_memory and count == 1:
            leases.note(
                "one parameter server has no neighbour: no checkpoints, and when it is lost, training begins anew"
            )

    def __len__(self) -> int:
        return len(self._places)

    @property
    def ready(self) -> bool:
        """Whether all are arranged."""
        return all(map(self._is_arranged, range(len(self))))

    def figures(self, instance: str) -> Figures | None:
        """What a server said last; None of one that has said nothing yet, or is none."""
        return self.told.get(instance)

    @property
    def told(self) -> dict[str, Figures]:
        """What each server said last, by name."""
        pairs = zip(self._places, self._seats, strict=True)
        return {place.instance: seat.figures for place, seat in pairs if place.address and seat.figures}

    def address(self, instance: str) -> str:
        """Where a server listens; empty: it is not there, or is none."""
        return next((place.address for place in self._places if place.instance == instance), "")

    # Instances ------------------------------------------------------------------------------------------------

    def register(self, instance: str, incarnation: int, address: str, now: float) -> Joined | None:
        """A server is there. None: it is to leave, because a later start of its name has registered."""
        index = self._index(instance)
        if index is None:
            return None
        self._leases.lost(instance, incarnation, now)  # as a worker, which it may have been
        place = self._places[index]
        if place.instance == instance and place.incarnation > incarnation:
            return None
        if (place.instance, place.incarnation, place.address) != (instance, incarnation, address):
            self.lost(place.instance, place.incarnation, now)
            self._places[index] = Place(instance, incarnation, address, place.life + 1)
            self._seats[index] = Seat(now)
            self._publish()
        leases = self._leases
        return Joined(leases.kept.epoch, leases.kept.generation, leases.lease_secs, leases.lease_secs / 3)

    def lost(self, instance: str, incarnation: int, now: float, why: str = "") -> None:
        """The instance is gone. Nothing when it has no place, or not any more."""
        index = self._index(instance)
        if index is None or self._leases.finished:
            return
        place, seat = self._places[index], self._seats[index]
        if (place.instance, place.incarnation) != (instance, incarnation):
            return
        if self.stand_in(index) is not None:
            place.instance = ""
        if not place.address:
            return
        place.address = ""
        self._seats[index] = Seat(now)
        self.cuts.drop(now)
        what = f"{instance} {why or 'is gone'}"
        if not self.cuts.readable():
            self._begin_anew(f"{what}, and with it the checkpoint in memory")
        elif seat.holds:
            self._replace(index, seat, what)
        self._publish()

    def stand_in(self, index: int) -> tuple[str, int] | None:
        """The worker that has the place, or is to have it: name and incarnation."""
        place = self._places[index]
        return (place.instance, place.incarnation) if place.instance not in ("", f"ps-{index}") else None

    def replace_by(self, index: int, worker: str, incarnation: int) -> None:
        """Have a worker take the place, which nobody has; it is told so when it asks next."""
        place = self._places[index]
        place.instance, place.incarnation = worker, incarnation

    def silence(self, instance: str, incarnation: int, now: float) -> float | None:
        """Seconds since the last word of a server; None of an instance that is none."""
        for place, seat in zip(self._places, self._seats, strict=True):
            if (place.instance, place.incarnation) == (instance, incarnation) and place.address:
                return now - seat.heard
        return None

    def tick(self, now: float) -> None:
        """Time has passed."""
        if (
            now - self._ticked > self._leases.lease_secs / 2
        ):  # we slept ourselves: nobody could have been heard
            for seat in self._seats:
                seat.heard += now - self._ticked
        self._ticked = now

    # Calls ----------------------------------------------------------------------------------------------------

    def calls(self, now: float) -> list[Call]:
        """What to ask now; what is given out is under way until it is `answered` or `unanswered`."""
        if self._leases.finished:
            return []
        found = [
            Call(index, place.life, place.address, header, secs)
            for index, place in enumerate(self._places)
            if place.address
            for header, secs in self._headers(index, now)
        ]
        for call in found:
            self._seats[call.index].under_way.add(call.name)
        return found

    def answered(self, call: Call, answer: Answer, now: float) -> None:
        seat = self._done(call)
        if seat is None:
            return
        seat.heard = now
        if isinstance(call.header, Arrange):
            seat.arranged = call.header
            self.cuts.held(call.header)
            self._publish()
        elif isinstance(answer, Figures):
            self._look(call.index, seat, answer, now)
        elif isinstance(call.header, Revoke) and isinstance(answer, Revoked):
            if call.header.generation == self._leases.kept.generation:
                self._revoked(seat, call.header.leases, answer.progress)
        elif isinstance(call.header, Cut) and isinstance(answer, CutTaken):
            self.cuts.taken(call.header.folder, answer)

    def unanswered(self, call: Call, error: SQLFlowError, now: float) -> None:
        """The call has failed. What a server cannot restore, another could not either: the job has failed.

        But what nobody has any more is lost as servers are.
        """
        seat = self._done(call)
        if seat is None:
            return
        seat.not_before = now + RETRY_SECS
        if isinstance(call.header, Cut):
            self.cuts.drop(now)
        if isinstance(error, AwayError | NotReadyError | GenerationError):
            return
        what = f"parameter server {call.index}: {error.message}"
        if isinstance(call.header, Arrange) and (
            call.header.manifest is not None or self._leases.cut_is_lost
        ):
            if call.header.generation == self._leases.kept.generation:
                self._begin_anew(what)
                self._publish()
            return
        self._leases.note(what)
        if isinstance(call.header, Arrange):
            self._leases.fail(to_failed(error, ""))

    def _headers(self, index: int, now: float) -> list[tuple[Header, float]]:
        """What to ask of one server."""
        seat, kept = self._seats[index], self._leases.kept
        found: list[tuple[Header, float]] = []
        if (
            now - seat.asked >= (HASTY_SECS if self._waits else STATUS_SECS)
            and "Status" not in seat.under_way
        ):
            seat.asked = now
            found.append((Status(), self._leases.lease_secs))
        if now < seat.not_before:
            return found
        if not self._is_arranged(index):
            if "Arrange" not in seat.under_way and all(place.address for place in self._places):
                seat.holds = True
                found.append((self._wanted(index), LONG_SECS))
        elif self.ready:
            revoking = tuple(lease for lease in kept.revoking if lease not in seat.revoked)
            if revoking and "Revoke" not in seat.under_way:
                found.append((Revoke(kept.generation, revoking), self._leases.lease_secs))
            if index == 0 and self.open and "Cut" not in seat.under_way:
                steps = tuple(each.step for each in self._seats)
                if self.cuts.due(steps[0], now):
                    found.append((self._cut(self.cuts.begin(steps, now)), LONG_SECS))
        return found

    def _cut(self, name: str) -> Cut:
        kept = self._leases.kept
        if self.cuts.in_memory:
            last = (kept.cut.folder,) if kept.cut else ()
            return Cut(kept.generation, name, memory=True, kept=last)
        return Cut(kept.generation, name)

    @property
    def open(self) -> bool:
        """Whether pulls and pushes are answered by all, as far as they have said."""
        generation = self._leases.kept.generation
        figures = [seat.figures for seat in self._seats]
        return all(each is not None and each.open and each.generation == generation for each in figures)

    @property
    def _waits(self) -> bool:
        return bool(self.cuts.under_way) or not (self.ready and self.open)

    def _done(self, call: Call) -> Seat | None:
        """Whom a call was made to; None when that is not there any more."""
        place, seat = self._places[call.index], self._seats[call.index]
        if (place.life, place.address) != (call.life, call.address):
            return None
        seat.under_way.discard(call.name)
        return seat

    def _revoked(self, seat: Seat, leases: Sequence[int], progress: Sequence[Progress]) -> None:
        """One server takes nothing of these leases any more. When none does, what is on any of them is done."""
        told = {part.task.attempt: part for part in progress}
        seat.revoked |= {lease: told.get(lease) for lease in leases}
        everywhere = [lease for lease in leases if all(lease in each.revoked for each in self._seats)]
        parts = [each.revoked.pop(lease) for lease in everywhere for each in self._seats]
        furthest_last = sorted(filter(None, parts), key=lambda part: part.rows)
        self._leases.revoked(everywhere, furthest_last)

    def _look(self, index: int, seat: Seat, figures: Figures, now: float) -> None:
        seat.figures = figures
        for name, shard in figures.written.items():
            if error := self.cuts.written(index, name, shard):
                self._leases.note(f"a checkpoint cannot be written: {error}")
                self.cuts.drop(now)

    # Places -----------------------------------------------------------------------------------------------------

    @property
    def _places(self) -> list[Place]:
        return self._leases.kept.servers

    def _index(self, instance: str) -> int | None:
        role, _, number = instance.rpartition("-")
        if role == "ps":
            return int(number) if int(number) < len(self) else None
        return next((index for index, place in enumerate(self._places) if place.instance == instance), None)

    def _wanted(self, index: int) -> Arrange:
        kept = self._leases.kept
        restore, manifest = "", None
        if kept.cut is not None:
            restore, manifest = kept.cut.folder, kept.cut.manifest
        addresses = tuple(place.address for place in self._places)
        return Arrange(
            index,
            kept.generation,
            self._places[index].life,
            addresses,
            self._mode,
            restore,
            manifest,
            self._leases.last,
            tuple(number for number, lease in kept.leases.items() if lease.type == "train"),
        )

    def _is_arranged(self, index: int) -> bool:
        """What it would restore does not matter any more."""
        arranged = self._seats[index].arranged
        return arranged is not None and _same(arranged, self._wanted(index))

    def _replace(self, index: int, seat: Seat, what: str) -> None:
        """A server is lost with the parameters that it held: it goes back alone, or all do."""
        cut = self._leases.kept.cut
        others = any(seat.holds for seat in self._seats)
        if self._mode.kind == "async" and cut is not None and others:
            steps = self.cuts.steps
            updates = f"{max(0, seat.step - steps[index]):,} updates" if steps else "updates"
            self._leases.note(
                f"{what}; it goes on from the checkpoint {cut.folder}: {updates} of it are lost"
            )
            return
        self._go_back(what)

    def _begin_with(self, count: int) -> None:
        """At first, or with another number of servers than an earlier master, where the job is resumed."""
        kept = self._leases.kept
        resumed = bool(kept.servers)
        kept.servers = [Place() for _ in range(count)]
        if resumed:
            if kept.cut is not None and kept.cut.manifest is not None:  # in the memory of those that were
                kept.cut = None
            self._leases.note(f"the job goes on with {count} parameter servers")
            self._leases.go_back()

    def _begin_anew(self, what: str) -> None:
        """The cut is lost."""
        self._leases.kept.cut = None
        self._go_back(what)

    def _go_back(self, what: str) -> None:
        self._leases.note(what)
        self._leases.go_back()
        for other in self._seats:
            other.holds, other.arranged = False, None
            other.revoked.clear()

    def _publish(self) -> None:
        """Have workers told where the servers are, if that has changed."""
        kept = self._leases.kept
        addresses = tuple(place.address for place in self._places)
        before = self._leases.servers
        if before is None or (kept.generation, addresses, self.ready) != (
            before.generation,
            before.addresses,
            before.ready,
        ):
            self._number += 1
            self._leases.servers = exchange.Servers(self._number, kept.generation, addresses, self.ready)


def _same(one: Arrange, other: Arrange) -> bool:
    return (one.generation, one.life, one.addresses) == (other.generation, other.life, other.addresses)

"""Set of a job's parameter servers in the durable state: who serves which index, and the change that is under way."""

from __future__ import annotations

from collections.abc import Collection

from edl.errors import JobError
from edl.master.state import MasterState, ServerChange, ServerRecord
from edl.ps.checkpoint.content import Mode
from edl.ps.messages import Arrange


class ServerSet:
    """Servers of a job by index, followed by the servers that join when the change under way is complete."""

    def __init__(self, state: MasterState) -> None:
        self._state = state

    def __len__(self) -> int:
        """Return the number of servers without joining ones."""
        return len(self._state.servers)

    @property
    def records(self) -> list[ServerRecord]:
        return self._state.servers

    @property
    def places(self) -> list[ServerRecord]:
        """Records, joining servers' included."""
        return self._state.all_servers

    @property
    def homes(self) -> list[str]:
        return self._state.homes

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(record.address for record in self.records)

    def index(self, instance: str) -> int | None:
        """Return the place of an instance, or of a worker that stands in; None without a place."""
        if instance in self.homes:
            return self.homes.index(instance)
        return next((index for index, record in enumerate(self.records) if record.instance == instance), None)

    def stand_in(self, home: str) -> tuple[str, int] | None:
        """Return name and incarnation of the worker that occupies the slot of this server, or is chosen to."""
        record = self.places[self.homes.index(home)]
        return (record.instance, record.incarnation) if record.instance not in ("", home) else None

    def arrangement(self, index: int, mode: Mode) -> Arrange:
        """Return the call that arranges a server as the state has it now."""
        state = self._state
        return Arrange(
            index,
            state.generation,
            self.records[index].epoch,
            self.addresses,
            mode,
            state.checkpoint_name,
            state.checkpoint.manifest if state.checkpoint else None,
            state.last_lease,
            tuple(state.of_type("train")),
        )

    # Changes --------------------------------------------------------------------------------------------------

    @property
    def change(self) -> ServerChange | None:
        return self._state.server_change

    @property
    def target_count(self) -> int:
        """Number of servers, after the change that is under way."""
        return len(self.change.homes) if self.change is not None else len(self)

    @property
    def is_complete(self) -> bool:
        """True if there is a change, and all servers that join are there."""
        return self.change is not None and all(record.address for record in self.change.joining)

    def begin(self, count: int, leaving: Collection[str]) -> None:
        """Begin to have `count` servers, without the instances `leaving`; the present number withdraws a change.

        Raises JobError if the number is changing already.
        """
        if self.change is None:
            if count != len(self) or leaving:
                self._state.begin_server_change(count, leaving)
        elif count == self.target_count:
            return
        elif self.target_count == len(self):  # servers are to be replaced: this change does that too
            leaving = {*self.homes} - {*self.change.homes}
            self.withdraw()
            self._state.begin_server_change(count, leaving)
        elif count != len(self):
            raise JobError(
                f"the number of servers is changing from {len(self)} to {self.target_count}",
                hint=f"wait until it has, or withdraw the change by the number {len(self)}",
            )
        else:
            self.withdraw()

    def withdraw(self) -> None:
        if self.change is not None:
            self._state.keep_counts(self.change.joining)
        self._state.server_change = None

    def is_to_replace(self, home: str) -> bool:
        """Return True if the change only replaces servers, and this one among them."""
        return self.change is not None and home not in self.change.homes and self.target_count == len(self)

    def describe(self, *, closing: bool = False) -> str:
        """Describe the change that is under way; empty without one. `closing`: the last checkpoint is in progress."""
        if self.change is None:
            return ""
        what = f"{len(self)} → {self.target_count}"
        if self.target_count == len(self):
            what = f"{len(self)}, without {', '.join(sorted({*self.homes} - {*self.change.homes}))}"
        missing = [record.home for record in self.change.joining if not record.address]
        if missing:
            return f"{what}: waits for {', '.join(missing)}"
        return f"{what}: {'the last checkpoint is written' if closing else 'waits for a checkpoint'}"

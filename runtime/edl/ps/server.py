"""A parameter server: what it answers to each call. `edl.ps.service` brings the calls.

It is nothing until it is arranged; then it has a term (`edl.ps.term`), and another one when it is arranged for a later
generation or life. Server 0 leads: it keeps the rounds of a synchronous job, and has the others cut with it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import msgspec

from edl.checkpoints import CheckpointStore
from edl.errors import ClusterError, JobError
from edl.ps import cuts, shards
from edl.ps import messages as say
from edl.ps.channel import GenerationError, NotReadyError
from edl.ps.counters import Counters
from edl.ps.cutting import Cutter
from edl.ps.lead import Lead
from edl.ps.neighbours import Memory, Neighbours
from edl.ps.peers import Peers
from edl.ps.term import Start, Term, TermCopy
from edl.ps.wire import Array

Answer = tuple[msgspec.Struct, Sequence[Array]]
_CUT_SECONDS = 60.0  # that copying, or writing, may take another server


class Running(NamedTuple):
    """A term, and who works for it. lead: of server 0 in sync alone."""

    term: Term
    cutter: Cutter
    lead: Lead | None


class Server:
    """token: of the job, for calls to the others. store: of the cuts that are files."""

    def __init__(self, token: str, store: CheckpointStore) -> None:
        self._token = token
        self._store = store
        self._counters = Counters()
        self._arranging = threading.Lock()
        self._running: Running | None = None
        self._peers = Peers((), token)
        self._memory = Memory()
        self._neighbours = Neighbours(self._memory, token)
        self.calls: dict[type[msgspec.Struct], Callable[[Any, Sequence[Array]], Answer]] = {
            say.Arrange: self._arrange,
            say.Status: self._status,
            say.Define: self._define,
            say.Load: self._load,
            say.Open: self._open,
            say.Pull: self._pull,
            say.Push: self._push,
            say.Ticket: self._ticket,
            say.Land: self._land,
            say.Flush: self._flush,
            say.Commit: self._commit,
            say.Revoke: self._revoke,
            say.Cut: self._cut,
            say.Export: self._export,
            say.Keep: self._keep,
            say.Fetch: self._fetch,
        }

    def answer(self, header: msgspec.Struct, arrays: Sequence[Array]) -> Answer:
        """The answer, and its arrays. NotReadyError, GenerationError, JobError: as `edl.ps.channel` says."""
        return self.calls[type(header)](header, arrays)

    def close(self) -> None:
        """Refuse who waits."""
        with self._arranging:
            self._end()
            self._peers.close()

    # Calls of the master -----------------------------------------------------------------------------------

    def _arrange(self, asked: say.Arrange, arrays: Sequence[Array]) -> Answer:
        with self._arranging:
            term = self._running.term if self._running else None
            now = (term.arranged.generation, term.arranged.life) if term else (-1, -1)
            if (asked.generation, asked.life) < now:
                raise GenerationError(f"server {asked.index} was arranged for a later generation")
            if term is None or (asked.generation, asked.life) > now:
                self._end()
                self._running = self._begin(asked)
                term = self._running.term
            elif asked.addresses != term.arranged.addresses:
                term.arranged = msgspec.structs.replace(term.arranged, addresses=asked.addresses)
                self._meet(asked)
            return say.Arranged(term.version, term.store is not None, term.open), ()

    def _status(self, asked: say.Status, arrays: Sequence[Array]) -> Answer:
        if self._running is None:
            return self._counters.figures(), ()
        term, cutter, lead = self._running
        store = term.store
        figures = msgspec.structs.replace(
            self._counters.figures(),
            index=term.arranged.index,
            generation=term.arranged.generation,
            version=term.version,
            defined=store is not None,
            open=term.open,
            rows={name: len(table) for name, table in store.tables.items()} if store else {},
            bytes=store.nbytes if store else 0,
            stale=lead.stale if lead else 0,
            written=cutter.written(),
        )
        return figures, ()

    def _revoke(self, asked: say.Revoke, arrays: Sequence[Array]) -> Answer:
        term, _, lead = self._at(asked.generation)
        return say.Revoked((lead or term).revoke(asked.leases)), ()

    def _cut(self, asked: say.Cut, arrays: Sequence[Array]) -> Answer:
        if asked.memory and asked.wait:
            raise JobError("a checkpoint in memory is completed by the master")
        term, cutter, lead = self._at(asked.generation)
        peers = self._peers
        if asked.memory:
            self._memory.forget(asked.folder, asked.kept)
        write = self._neighbours.write if asked.memory else self._write
        alone = asked.alone or term.arranged.index != 0
        others: list[say.CutTaken] = []
        with lead.paused() if lead and not alone else nullcontext():
            order = msgspec.structs.replace(asked, alone=True, wait=False)
            pending = [] if alone else peers.begin(order, _CUT_SECONDS)
            told = not asked.wait  # a worker waits, the master does not
            taken = cutter.take(asked.folder, write, told=told)
            others = [each.result(say.CutTaken)[0] for each in pending]
        if lead and any(other.version.step != taken.version.step for other in others):
            raise ClusterError(f"the checkpoint {asked.folder} was begun at another version")
        if not asked.wait:
            return say.CutTaken(taken.version, taken.progress), ()
        written = [taken.written(_CUT_SECONDS)]
        if not alone:
            order = msgspec.structs.replace(asked, alone=True)
            written += [
                shard for other in peers.ask(order, say.CutTaken, _CUT_SECONDS) for shard in other.shards
            ]
            manifest = cuts.manifest_of(asked.folder, taken.version, term.arranged.mode, written)
            cuts.write_manifest(self._store, asked.folder, manifest)
        return say.CutTaken(taken.version, taken.progress, tuple(written)), ()

    # Calls of workers --------------------------------------------------------------------------------------

    def _define(self, asked: say.Define, arrays: Sequence[Array]) -> Answer:
        return self._of(asked.generation).define(asked.definition, arrays), ()

    def _load(self, asked: say.Load, arrays: Sequence[Array]) -> Answer:
        self._of(asked.generation).load(asked.table, arrays)
        return say.Done(), ()

    def _open(self, asked: say.Open, arrays: Sequence[Array]) -> Answer:
        self._of(asked.generation).begin()
        return say.Done(), ()

    def _pull(self, asked: say.Pull, arrays: Sequence[Array]) -> Answer:
        return self._pulled(asked, arrays)

    def _push(self, asked: say.Push, arrays: Sequence[Array]) -> Answer:
        term = self._of(asked.generation)
        following = len(asked.pull.tables) if asked.pull else 0
        mine, ids = arrays[: len(arrays) - following], arrays[len(arrays) - following :]
        with self._counters.push(mine[1 : 1 + 2 * len(asked.tables) : 2]):
            taken = term.push(asked, mine)
        if asked.pull is None or not taken:
            return say.Pushed(term.version, revoked=not taken), ()
        pulled, found = self._pulled(asked.pull, ids)
        return say.Pushed(term.version, pulled=pulled), found

    def _pulled(self, asked: say.Pull, ids: Sequence[Array]) -> tuple[say.Pulled, Sequence[Array]]:
        term = self._of(asked.generation)
        if asked.at_least > term.version.step:
            term.trained()
            term.wait(asked.at_least, asked.wait_secs)
        with self._counters.pull(ids):
            return term.pull(asked, ids)

    def _ticket(self, asked: say.Ticket, arrays: Sequence[Array]) -> Answer:
        return self._leading(asked.generation).ticket(asked), ()

    def _land(self, asked: say.Land, arrays: Sequence[Array]) -> Answer:
        return self._leading(asked.generation).land(asked.ticket), ()

    def _flush(self, asked: say.Flush, arrays: Sequence[Array]) -> Answer:
        return self._leading(asked.generation).flush(asked.wait_secs), ()

    def _export(self, asked: say.Export, arrays: Sequence[Array]) -> Answer:
        store = self._of(asked.generation).trained()
        with self._counters.busy():
            table = store.table(asked.table)
            ids, rows, more = table.chunk(asked.after, asked.limit)
            return say.Exported(more, len(table)), (ids, rows)

    # Calls of server 0 -------------------------------------------------------------------------------------

    def _commit(self, asked: say.Commit, arrays: Sequence[Array]) -> Answer:
        with self._counters.busy():
            self._of(asked.generation).commit(asked.step, asked.tickets)
        return say.Done(), ()

    # Calls of neighbours -----------------------------------------------------------------------------------

    def _keep(self, asked: say.Keep, arrays: Sequence[Array]) -> Answer:
        self._neighbours.keep(asked, arrays)
        return say.Done(), ()

    def _fetch(self, asked: say.Fetch, arrays: Sequence[Array]) -> Answer:
        return say.Done(), (self._neighbours.piece(asked),)

    # Terms -------------------------------------------------------------------------------------------------

    def _at(self, generation: int) -> Running:
        """The term, of that generation, and who works for it."""
        running = self._running
        if running is None:
            raise NotReadyError("the server is not arranged yet")
        running.term.check(generation)
        return running

    def _of(self, generation: int) -> Term:
        return self._at(generation).term

    def _leading(self, generation: int) -> Lead:
        lead = self._at(generation).lead
        if lead is None:
            raise JobError("rounds are kept by server 0 of a synchronous job")
        return lead

    def _begin(self, asked: say.Arrange) -> Running:
        if asked.mode.kind == "sync" and asked.mode.grads_to_wait < 1:
            raise JobError(f"a round cannot wait for {asked.mode.grads_to_wait} gradients")
        start = self._restored(asked) if asked.restore else None
        self._meet(asked)
        term = Term(asked, start)
        leads = asked.index == 0 and asked.mode.kind == "sync"
        return Running(term, Cutter(term), Lead(term, lambda: self._peers) if leads else None)

    def _restored(self, asked: say.Arrange) -> Start:
        if asked.manifest is not None:
            return self._neighbours.restore(asked, asked.manifest)
        index, servers = asked.index, len(asked.addresses)
        manifest = cuts.read_manifest(self._store.fetch(asked.restore, cuts.MANIFEST))
        folder = self._store.fetch(asked.restore, *cuts.files_for(manifest, index, servers))
        return cuts.restore(folder, manifest, index, servers, same_leases=cuts.goes_on(asked, manifest))

    def _write(self, name: str, copied: TermCopy) -> say.Shard:
        """Write the shard as a file, for all to have. OSError, SQLFlowError: it cannot be."""
        shard = shards.write(self._store.folder / name, copied)
        self._store.publish(name, shard.file)
        return shard

    def _end(self) -> None:
        """Of the present term; its calls are refused from here on."""
        running, self._running = self._running, None
        if running is not None:
            running.term.close()
            running.cutter.close()
            if running.lead is not None:
                running.lead.close()

    def _meet(self, asked: say.Arrange) -> None:
        self._peers.close()
        others = [address for index, address in enumerate(asked.addresses) if index != asked.index]
        self._peers = Peers(others if asked.index == 0 else (), self._token)

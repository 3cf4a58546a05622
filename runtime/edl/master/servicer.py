"""RPC servicer of the master on asyncio: a thousand workers may wait in it at once."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import grpc
from grpc import aio

from edl.checkpoints import GoneError
from edl.checkpoints.master_store import Keeper, Sent
from edl.errors import ClusterError, JobError, SpecError
from edl.jobs.cluster_folder import RELAYED
from edl.logs import log
from edl.master.state_loop import StateLoop
from edl.rpc import codec, transport
from edl.rpc import control_pb2 as pb
from edl.rpc.channel import SERVER_OPTIONS, TOKEN
from edl.rpc.control_pb2_grpc import MasterServicer, add_MasterServicer_to_server
from edl.tasks.protocol import Flag

LONGEST_WAIT = 60.0  # seconds of a long poll

T = TypeVar("T")


class FileService(MasterServicer):
    """Servicer of files that instances send and fetch.

    `keeper` stores the checkpoints of instances that share no disk, None if they do; `relayed` the other files of a job
    if its client waits for its output, see `edl.jobs.cluster_folder.RELAYED`.
    """

    def __init__(
        self, keeper: Keeper | None, relayed: Keeper | None, log: Callable[[str], None] = log
    ) -> None:
        self._keeper = keeper
        self._relayed = relayed
        self._log = log
        self._refused: set[str] = set()  # names of files that were refused since one of that name was stored

    async def Keep(self, request: pb.KeepRequest, context: Any) -> pb.KeepResponse:  # noqa: N802
        sent = Sent(request.name, request.file, request.size, request.crc)
        try:
            upto = await self._call_store(
                context, self._store_of(sent.name), Keeper.keep, sent, request.start, request.data
            )
        except (JobError, OSError) as error:
            if sent.file not in self._refused:  # the next checkpoint would only repeat it
                hint = f"; {error.hint}" if isinstance(error, JobError) and error.hint else ""
                self._log(f"{sent.file} cannot be stored: {error}{hint}")
            self._refused.add(sent.file)
            return pb.KeepResponse(refused=str(error))
        if upto >= sent.size:
            self._refused.discard(sent.file)
        return pb.KeepResponse(upto=upto)

    async def Fetch(self, request: pb.FetchRequest, context: Any) -> pb.FetchResponse:  # noqa: N802
        try:
            store = self._store_of(request.name)
            piece = await self._call_store(
                context, store, Keeper.read, request.name, request.file, request.start
            )
        except GoneError:
            return pb.FetchResponse(gone=True)
        return pb.FetchResponse(data=piece.data, size=piece.size, crc=piece.crc)

    async def ListKept(self, request: pb.ListKeptRequest, context: Any) -> pb.ListKeptResponse:  # noqa: N802
        files_of_folders = await self._call_store(context, self._keeper, Keeper.files)
        folders = (
            pb.ListKeptResponse.Folder(name=name, files=files) for name, files in files_of_folders.items()
        )
        return pb.ListKeptResponse(folders=folders)

    async def Discard(self, request: pb.DiscardRequest, context: Any) -> pb.DiscardResponse:  # noqa: N802
        await self._call_store(context, self._keeper, Keeper.remove, request.name)
        return pb.DiscardResponse()

    def _store_of(self, name: str) -> Keeper | None:
        return self._relayed if name in RELAYED else self._keeper

    async def _call_store(
        self, context: Any, store: Keeper | None, do: Callable[..., T], *arguments: object
    ) -> T:
        """Call a store of files in a thread: disks may be slow."""
        if store is None:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "this master stores no such files")
        try:
            return await asyncio.to_thread(do, store, *arguments)
        except SpecError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, error.message)
            raise


class Service(FileService):
    """Servicer of a state loop. `snapshot` returns the encoded figures of the job; `scale` sets the numbers of workers
    and servers, those that are not None, and returns the numbers until now; `pause` begins to stop the job. For the
    stores of files see `FileService`.
    """

    def __init__(
        self,
        state_loop: StateLoop,
        snapshot: Callable[[], bytes],
        scale: Callable[[int | None, int | None], Awaitable[tuple[int, int]]],
        keeper: Keeper | None = None,
        pause: Callable[[], None] = lambda: None,
        relayed: Keeper | None = None,
    ) -> None:
        super().__init__(keeper, relayed, state_loop.tasks.log)
        self._state_loop = state_loop
        self._snapshot = snapshot
        self._scale = scale
        self._pause = pause

    async def Register(self, request: pb.RegisterRequest, context: Any) -> pb.Registration:  # noqa: N802
        instance, incarnation = request.instance, request.incarnation
        async with _going_on(context):
            if request.role == "ps":
                return codec.joined_to(
                    await self._state_loop.register_server(instance, incarnation, request.address)
                )
            return codec.joined_to(
                await self._state_loop.join(instance, incarnation, dict(request.metric_kinds))
            )

    async def Exchange(self, request: pb.ExchangeRequest, context: Any) -> pb.ExchangeResponse:  # noqa: N802
        try:
            asked = codec.request_from(request)
        except (SpecError, KeyError) as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"invalid exchange request: {error}")
            raise
        wait = min(request.wait_secs, LONGEST_WAIT)
        async with _going_on(context):
            return codec.answer_to(await self._state_loop.exchange(asked, wait, Flag(request.known)))

    async def JobStatus(self, request: pb.JobStatusRequest, context: Any) -> pb.JobStatusResponse:  # noqa: N802
        return pb.JobStatusResponse(snapshot=self._snapshot())

    async def Cancel(self, request: pb.CancelRequest, context: Any) -> pb.CancelResponse:  # noqa: N802
        self._state_loop.tasks.cancel(request.reason or "the job was cancelled")
        self._state_loop.notify()
        return pb.CancelResponse()

    async def Scale(self, request: pb.ScaleRequest, context: Any) -> pb.ScaleResponse:  # noqa: N802
        workers = request.workers if request.HasField("workers") else None
        servers = request.servers if request.HasField("servers") else None
        if (workers or 0) < 0 or (servers is not None and servers < 1):
            wrong = f"{request.workers} workers, {request.servers} servers"
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, wrong)
        if self._state_loop.tasks.is_finished:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "the job has ended")
        async with _going_on(context):
            try:
                before, servers_before = await self._scale(workers, servers)
            except JobError as error:
                text = "; ".join(filter(None, (error.message, error.hint)))
                await context.abort(grpc.StatusCode.FAILED_PRECONDITION, text)
        return pb.ScaleResponse(workers=request.workers, before=before, servers_before=servers_before)

    async def Pause(self, request: pb.PauseRequest, context: Any) -> pb.PauseResponse:  # noqa: N802
        if self._state_loop.tasks.is_finished:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "the job has ended")
        self._pause()
        return pb.PauseResponse()


@contextlib.asynccontextmanager
async def _going_on(context: Any) -> AsyncIterator[None]:
    """Answer UNAVAILABLE if this master has lost its state store: the caller retries and finds the next master."""
    try:
        yield
    except ClusterError as error:
        await context.abort(grpc.StatusCode.UNAVAILABLE, error.message)
        raise


class TokenInterceptor(aio.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Interceptor that refuses calls without the job's token."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], details: grpc.HandlerCallDetails
    ) -> Any:
        token = dict(details.invocation_metadata).get(TOKEN, "")
        if self._token and hmac.compare_digest(str(token).encode(), self._token):
            return await continuation(details)
        return _refusal


async def _refuse(request: Any, context: Any) -> None:
    await context.abort(grpc.StatusCode.UNAUTHENTICATED, "the call lacks the token of this job")


_refusal = grpc.unary_unary_rpc_method_handler(_refuse)


async def serve(service: FileService, address: str, token: str) -> tuple[aio.Server, int]:
    """Start the server, and return it with its port."""
    server = aio.server(options=SERVER_OPTIONS, interceptors=(TokenInterceptor(token),))
    add_MasterServicer_to_server(service, server)  # type: ignore[no-untyped-call]  # generated
    port = transport.listen(server, address)
    await server.start()
    return server, port

"""Services: their names in what a container is told become addresses, and connections to these reach a pod.

There is no DNS for processes of this machine. A name stands for the same address as long as there is the Service, also
of a headless one; which pod it leads to is decided anew for every connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import re
import socket
import struct
import threading
from collections.abc import Iterator

from tests.kubernetes.controllers import NEVER
from tests.kubernetes.kinds import POD, SERVICE, Key, Object
from tests.kubernetes.registry import TERMINAL
from tests.kubernetes.selectors import matches_labels
from tests.kubernetes.store import Store

NAME = re.compile(r"(?<![\w.-])([a-z0-9-]+)\.([a-z0-9-]+)\.svc(?:\.cluster\.local)?(?![\w-]|\.\w)")
PIECE = 1 << 16
HEADLESS = "None"


class Services:
    def __init__(self, store: Store, addresses: Iterator[str]) -> None:
        self._store, self._addresses, self._seen = store, addresses, 0
        self._headless: dict[str, str] = {}  # addresses by uid
        self._open: dict[Key, list[asyncio.Server]] = {}
        self._opening = asyncio.Lock()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def step(self, now: float) -> float:
        """Listen where Services are."""
        changes, self._seen = self._store.since(self._seen), self._store.revision
        for key in {change.key for change in changes if change.key.kind is SERVICE}:
            asyncio.run_coroutine_threadsafe(self._listen(key), self._loop)
        return NEVER

    def place(self, text: str) -> str:
        """With addresses instead of the names of Services. The store's lock is held."""

        def located(match: re.Match[str]) -> str:
            service = self._store.get(Key(SERVICE, match[2], match[1]))
            return match[0] if service is None else self._address(service)

        return NAME.sub(located, text)

    def _address(self, service: Object) -> str:
        if service["spec"]["clusterIP"] != HEADLESS:
            return str(service["spec"]["clusterIP"])
        uid = service["metadata"]["uid"]
        if uid not in self._headless:
            self._headless[uid] = next(self._addresses)
        return self._headless[uid]

    async def _listen(self, key: Key) -> None:
        async with self._opening:
            for server in self._open.pop(key, []):
                server.close()
            with self._store.lock:
                service = self._store.get(key)
                address = self._address(service) if service else ""
            for port in service["spec"].get("ports", []) if service else ():
                forward = functools.partial(self._forward, key, port["targetPort"])
                with contextlib.suppress(PermissionError):  # a port below 1024, for who is not root
                    server = await asyncio.start_server(forward, address, port["port"])
                    self._open.setdefault(key, []).append(server)

    async def _forward(
        self, key: Key, port: int | str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """One connection to the first pod that takes it, else it is reset."""
        with self._store.lock:
            targets = _targets(self._store, key, port)
        for address, number in targets:
            with contextlib.suppress(OSError):
                answers, asks = await asyncio.open_connection(address, number)
                await asyncio.gather(_pump(reader, asks), _pump(answers, writer))
                asks.close()
                writer.close()
                return
        _reset(writer)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until the end of what comes, which is told on; a connection that breaks, breaks on the other side too."""
    try:
        while piece := await reader.read(PIECE):
            writer.write(piece)
            await writer.drain()
        writer.write_eof()
    except OSError:
        _reset(writer)


def _reset(writer: asyncio.StreamWriter) -> None:
    at_once = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
    writer.transport.abort()


def _targets(store: Store, key: Key, port: int | str) -> list[tuple[str, int]]:
    """Addresses and ports of the Service's pods; those that are about to end come last."""
    service = store.get(key)
    if service is None or not service["spec"].get("selector"):
        return []
    selector = {"matchLabels": service["spec"]["selector"]}
    unready = service["spec"].get("publishNotReadyAddresses", False)
    selected = [
        pod
        for pod in store.all(POD, key.namespace)
        if matches_labels(selector, pod["metadata"].get("labels") or {})
    ]
    pods = [pod for pod in selected if _is_reachable(pod, unready=unready)]
    pods.sort(key=lambda pod: "deletionTimestamp" in pod["metadata"])
    return [(pod["status"]["podIP"], _number(pod, port)) for pod in pods]


def _is_reachable(pod: Object, *, unready: bool) -> bool:
    """`unready`: pods count that are not ready yet, or no more."""
    status = pod["status"]
    if "podIP" not in status or status["phase"] in TERMINAL:
        return False
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions", []))
    return unready or (ready and "deletionTimestamp" not in pod["metadata"])


def _number(pod: Object, port: int | str) -> int:
    """Of a port that may be named."""
    if isinstance(port, int):
        return port
    ports = [one for container in pod["spec"]["containers"] for one in container.get("ports", [])]
    return next((one["containerPort"] for one in ports if one.get("name") == port), 0)

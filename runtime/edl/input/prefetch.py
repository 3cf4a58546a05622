"""Prefetching iterator: runs another iterator in a thread, a bounded number of items ahead."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")


class Prefetch(Generic[T]):
    """Iterator over `items` that is evaluated in another thread, at most `depth` finished items ahead.

    An exception of `items` is raised in place of its item. Leaving the context, or `close`, stops the thread after the
    current item and waits for it.
    """

    def __init__(self, items: Iterator[T], depth: int = 2) -> None:
        self._items = items
        self._depth = depth
        self._ready: deque[T] = deque()
        self._changed = threading.Condition()
        self._error: BaseException | None = None
        self._finished = False
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="edl-prefetch", daemon=True)
        self._thread.start()

    def __enter__(self) -> Prefetch[T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        with self._changed:
            self._changed.wait_for(lambda: self._ready or self._finished)
            if self._ready:
                self._changed.notify_all()
                return self._ready.popleft()
            error, self._error = self._error, None
        if error is not None:
            raise error
        raise StopIteration

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._ready.clear()
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        try:
            for item in self._items:
                if not self._put(item):
                    break
        except BaseException as error:
            self._error = error
        finally:
            with self._changed:
                self._finished = True
                self._changed.notify_all()

    def _put(self, item: T) -> bool:
        """Wait for room and add the item. Return False if the iterator was closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._ready) < self._depth)
            if not self._closed:
                self._ready.append(item)
                self._changed.notify_all()
            return not self._closed

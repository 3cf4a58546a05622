"""Collective calls of LightGBM over a group of workers, in place of its own sockets.

    histograms of a leaf ─▶ reduce_scatter ─▶ sums of some columns ─▶ best split ─▶ all_gather ─▶ the same split

The library takes two functions instead of addresses. So its workers have no ports of their own, and a lost worker is
noticed as in any other group. Parts are added in the order of ranks, so the same rows on the same ranks give the same
bits.

A function called from C++ cannot raise. When a call fails, it and all later ones answer as if the other members had
sent what this one has: the round ends soon and without harm, and its tree is discarded.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator, Mapping
from typing import Any

import lightgbm
import numpy as np
from lightgbm.basic import _LIB

from edl.arrays import Array
from edl.collectives.base import Group

PIECE = 16 << 20  # bytes of a sample to exchange at once

_Reduce = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int32)
_Numbers = ctypes.POINTER(ctypes.c_int32)
_ReduceScatter = ctypes.CFUNCTYPE(
    None,
    ctypes.c_void_p,  # input
    ctypes.c_int32,  # its bytes
    ctypes.c_int,  # bytes of a value
    _Numbers,  # where the block of each rank starts
    _Numbers,  # its length
    ctypes.c_int,  # ranks
    ctypes.c_void_p,  # output: the sum of all inputs in the block of this rank
    ctypes.c_int32,
    ctypes.POINTER(_Reduce),
)
_AllGather = ctypes.CFUNCTYPE(
    None,
    ctypes.c_void_p,  # input: the block of this rank
    ctypes.c_int32,
    _Numbers,  # where the block of each rank starts in the output
    _Numbers,  # its length
    ctypes.c_int,  # ranks
    ctypes.c_void_p,  # output
    ctypes.c_int32,
)


class LightGBMNetwork:
    """Network of LightGBM over `group`. It belongs to the thread that uses it."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._error: Exception | None = None
        self._functions = _ReduceScatter(self._reduce_scatter), _AllGather(self._all_gather)

    @contextlib.contextmanager
    def connect(self) -> Iterator[None]:
        """Provide a context in which the library's calls reach the other members.

        Raises GroupError at its end if one of the calls failed: what the library has made meanwhile is void.
        """
        functions = (ctypes.cast(function, ctypes.c_void_p) for function in self._functions)
        _check_status(_LIB.LGBM_NetworkInitWithFunctions(self._group.size, self._group.rank, *functions))
        try:
            yield
        except lightgbm.basic.LightGBMError:
            if self._error is None:
                raise
        finally:
            _check_status(_LIB.LGBM_NetworkFree())
        if self._error is not None:
            raise self._error

    def _reduce_scatter(
        self,
        input_address: int,
        size: int,
        of_value: int,
        starts: Any,
        lengths: Any,
        count: int,
        output_address: int,
        room: int,
        reduce: Any,
    ) -> None:
        sizes, rank = lengths[:count], self._group.rank
        if self._error is None:
            try:
                first, *others = self._group.all_to_all(_bytes(input_address, sum(sizes)), sizes)
                ctypes.memmove(output_address, first.ctypes.data, len(first))
                for part in others:
                    reduce[0](part.ctypes.data, output_address, of_value, len(part))
            except Exception as error:
                self._error = error
            else:
                return
        ctypes.memmove(output_address, input_address + starts[rank], sizes[rank])

    def _all_gather(
        self,
        input_address: int,
        size: int,
        starts: Any,
        lengths: Any,
        count: int,
        output_address: int,
        room: int,
    ) -> None:
        sizes, rank = lengths[:count], self._group.rank
        if self._error is None:
            try:
                parts = self._group.all_gather(_bytes(input_address, sizes[rank]), sizes)
                for start, part in zip(starts[:count], parts, strict=True):
                    ctypes.memmove(output_address + start, part.ctypes.data, len(part))
            except Exception as error:
                self._error = error
            else:
                return
        for start, length in zip(starts[:count], sizes, strict=True):
            ctypes.memmove(output_address + start, input_address, min(length, sizes[rank]))


def sample_rows(matrix: Array, group: Group, params: Mapping[str, Any]) -> tuple[Array, int]:
    """Return the rows from which LightGBM would choose intervals if one worker had all rows, and the number of rows.

    `matrix` are the rows of this worker; the group's rows follow each other in the order of ranks.
    """
    sizes = group.gather(np.array([len(matrix)]))[:, 0]
    total, first = int(sizes.sum()), int(sizes[: group.rank].sum())
    positions = _sample(total, params)
    rows_here = matrix[positions[(positions >= first) & (positions < first + len(matrix))] - first]
    ends = np.cumsum(sizes)
    counts = np.diff(np.searchsorted(positions, ends, side="left"), prepend=0)
    sample = np.empty((len(positions), matrix.shape[1]))
    width = max(1, PIECE // (sample.itemsize * max(1, len(positions))))
    for column in range(0, matrix.shape[1], width):
        part = np.ascontiguousarray(rows_here[:, column : column + width])
        of_row = part.itemsize * part.shape[1]
        parts = group.all_gather(part.reshape(-1).view(np.uint8), [int(count) * of_row for count in counts])
        rows = [piece.view(np.float64).reshape(-1, part.shape[1]) for piece in parts]
        sample[:, column : column + width] = np.concatenate(rows)
    return sample, total


def _sample(total: int, params: Mapping[str, Any]) -> Array:
    """Return the positions of the rows that LightGBM samples of so many."""
    text = lightgbm.basic._param_dict_to_str(dict(params)).encode()
    count = ctypes.c_int(0)
    _check_status(_LIB.LGBM_GetSampleCount(ctypes.c_int32(total), text, ctypes.byref(count)))
    positions = np.empty(count.value, np.int32)
    _check_status(
        _LIB.LGBM_SampleIndices(
            ctypes.c_int32(total), text, ctypes.c_void_p(positions.ctypes.data), ctypes.byref(count)
        )
    )
    return positions[: count.value]


def _bytes(address: int, size: int) -> Array:
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def _check_status(status: int) -> None:
    lightgbm.basic._safe_call(status)

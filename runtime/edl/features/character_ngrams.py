"""Hashes of the runs of n characters in texts, computed for a whole column at once.

Characters are Unicode code points. The hash of a run c[0], …, c[n-1] is h[n], where h[0] = 0 and

    h[i + 1] = mix(h[i] + c[i] + 1)    modulo 2**64

with the `mix` of `edl.features.hashing`. It is part of every stored model: it must never change (golden values are in
the tests).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from edl.features.arrays import Ints
from edl.features.hashing import Hashes, mix


def ngrams(texts: pa.Array, n: int) -> tuple[Hashes, Ints]:
    """Return the hashes of the runs of each text, concatenated, and their offsets, (texts + 1,).

    A text is taken in lower case, with a blank before and after it, and one blank for several. One that is then shorter
    than `n` is a single run. NULL, and a text of blanks, have no runs.
    """
    padded = _pad_texts(texts)
    lengths: Ints = pc.utf8_length(padded).to_numpy().astype(np.int64)
    characters = _characters(padded)
    counts = np.where(lengths > 0, np.maximum(lengths - n + 1, 1), 0)
    offsets: Ints = np.concatenate([[0], np.cumsum(counts)])
    first = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    starts = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - first, counts)
    sizes = np.repeat(np.minimum(lengths, n), counts)
    hashes: Hashes = np.zeros(len(starts), dtype=np.uint64)
    shortest = int(sizes.min()) if len(sizes) else 0
    for place in range(n):
        if place < shortest:
            hashes = mix(hashes + characters[starts + place] + np.uint64(1))
        else:
            some = sizes > place
            hashes[some] = mix(hashes[some] + characters[starts[some] + place] + np.uint64(1))
    return hashes, offsets


def _pad_texts(texts: pa.Array) -> pa.Array:
    lower = pc.utf8_lower(texts.cast(pa.large_string()).fill_null(""))
    text = pc.utf8_trim_whitespace(pc.replace_substring_regex(lower, r"\s+", " "))
    blank, none = pa.scalar(" ", pa.large_string()), pa.scalar("", pa.large_string())
    return pc.if_else(pc.equal(text, none), none, pc.binary_join_element_wise(blank, text, blank, none))


def _characters(texts: pa.Array) -> npt.NDArray[np.uint64]:
    """Return the code points of all texts, concatenated."""
    _, offsets, data = texts.buffers()
    if not len(texts) or data is None:
        return np.empty(0, dtype=np.uint64)
    bounds = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    joined = memoryview(data)[bounds[0] : bounds[-1]].tobytes().decode().encode("utf-32-le")
    return np.frombuffer(joined, dtype=np.uint32).astype(np.uint64)

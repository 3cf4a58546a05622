"""Row offsets of a CSV file: line ends outside of quotes, found block by block without a loop over rows.

A line end belongs to a field if the number of quotes in front of it is odd. That is exact as long as a quote only
encloses a whole field and is doubled inside of it (RFC 4180), which is checked on every byte.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from edl.errors import SourceError

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]

_LF, _CR = 10, 13
_MARK = b"\xef\xbb\xbf"  # UTF-8 byte order mark
_QUOTE_HINT = "quote the whole field, and write a quote inside of it twice"


class LineScanner:
    """Scanner of the consecutive blocks of one file.

    `empty_lines`: empty lines are rows (of a single column). `start`: byte at which the first block begins.
    """

    def __init__(self, path: str, delimiter: bytes, quote: bytes, empty_lines: bool, start: int = 0) -> None:
        self._path = path
        self._quote = quote
        self._inner = np.ones(256, bool)  # bytes not allowed next to a quoted field
        self._inner[list(delimiter + quote + b"\r\n")] = False
        self._empty_lines = empty_lines
        self._offset = start  # offset of the next block
        self._begin = start  # offset of the unfinished line
        self._lines = 0  # finished lines
        self._inside = False  # inside of quotes
        self._last = _LF  # byte before the next block

    def rows(self, block: bytes) -> Ints:
        """Return the offsets of the rows that end in this block, int64."""
        if self._offset == 0 and block.startswith(_MARK):
            block = block[len(_MARK) :]
            self._offset = self._begin = len(_MARK)
        if not block:
            return np.empty(0, np.int64)
        data = np.frombuffer(block, np.uint8)
        before = np.concatenate((np.array([self._last], np.uint8), data[:-1]))
        outside = self._outside(block, data)
        self._check(block, data, before, outside)
        line_ends = data == _LF
        if outside is not None:
            line_ends &= outside
        ends = np.flatnonzero(line_ends)
        begins = self._rows(ends + self._offset, before[ends] == _CR)
        self._offset += len(data)
        self._last = int(data[-1])
        return begins

    def end(self) -> Ints:
        """Return the offset of a last row without a line end.

        Raises SourceError if the file ends inside of quotes.
        """
        if self._inside:
            raise self._error(self._lines, "a quote is not closed", _QUOTE_HINT)
        if self._last == _CR:
            raise self._lone_return(self._lines)
        return np.arange(self._begin, self._begin + (self._offset > self._begin), dtype=np.int64)

    def _rows(self, ends: Ints, after_return: Bools) -> Ints:
        if not len(ends):
            return np.empty(0, np.int64)
        begins = np.concatenate(([self._begin], ends[:-1] + 1))
        self._begin = int(ends[-1]) + 1
        self._lines += len(ends)
        return begins if self._empty_lines else begins[ends - begins - after_return > 0]

    def _outside(self, block: bytes, data: Bytes) -> Bools | None:
        """Return a mask of the bytes outside of quotes (an even number of quotes precedes them), or None if all are."""
        if self._quote not in block:
            return np.zeros(len(data), bool) if self._inside else None
        quotes = (data == self._quote[0]).view(np.uint8)
        counted = np.add.accumulate(quotes, dtype=np.uint8)  # modulo 256, which keeps the parity
        counted += self._inside
        self._inside = bool(counted[-1] & 1)
        counted -= quotes
        outside: Bools = (counted & 1) == 0
        return outside

    def _check(self, block: bytes, data: Bytes, before: Bytes, outside: Bools | None) -> None:
        """Raise SourceError for a quote inside an unquoted field, text after a closing quote, or a lone CR."""
        if b"\r" in block or self._last == _CR:
            self._refuse(np.flatnonzero((before == _CR) & (data != _LF)), outside, data)
        quotes = np.flatnonzero(data == self._quote[0]) if outside is not None else np.empty(0, np.int64)
        self._refuse(quotes[self._inner[before[quotes]]], outside, data, quotes=True)
        follows = quotes[quotes < len(data) - 1] + 1
        if self._last == self._quote[0]:
            follows = np.concatenate(([0], follows))
        self._refuse(follows[self._inner[data[follows]]], outside, data, quotes=True)

    def _refuse(self, places: Ints, outside: Bools | None, data: Bytes, *, quotes: bool = False) -> None:
        """Raise SourceError if one of the places is outside of quotes."""
        if outside is not None:
            places = places[outside[places]]
        if not len(places):
            return
        first = int(places[0])
        ends = (data[:first] == _LF) if outside is None else (data[:first] == _LF) & outside[:first]
        line = self._lines + int(np.count_nonzero(ends))
        if not quotes:
            raise self._lone_return(line)
        raise self._error(
            line, "a quote is inside of an unquoted field, or text after a quoted one", _QUOTE_HINT
        )

    def _lone_return(self, line: int) -> SourceError:
        hint = "end all lines with a line feed, or quote fields with line ends"
        return self._error(line, "a carriage return has no line feed", hint)

    def _error(self, line: int, what: str, hint: str) -> SourceError:
        return SourceError(f"record {line + 1} of {self._path}: {what}", hint=hint)

"""A document's text under edits: the line index is changed by an edit, not made again.

`Text` answers what a `LineIndex` answers, and takes replacements. Line starts after the last edit are kept as they were
plus one common shift, so a keystroke costs a copy of the string and the lines it touches, however long the file is.
Knows no protocol.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from graphmend.analysis.source import LineIndex

_LINE_END = re.compile(r"\r\n|\r|\n")


class Text(LineIndex):
    """Text with lines counted from 0 and columns in code points, that can be edited in place.

    `_starts[i]` is where line i begins for i < `_pivot`; from there on it is `_starts[i] + _shift`.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(m.end() for m in _LINE_END.finditer(text))]
        self._pivot = len(self._starts)
        self._shift = 0

    @property
    def starts(self) -> list[int]:  # type: ignore[override]
        """Where every line begins; made at each access, for the few who need all of them."""
        return self._starts[: self._pivot] + [start + self._shift for start in self._starts[self._pivot :]]

    def __len__(self) -> int:
        return len(self._starts)

    def start(self, number: int) -> int:
        """Where a line begins; the text's end past the last line."""
        if number >= len(self._starts):
            return len(self.text)
        return self._starts[number] + (self._shift if number >= self._pivot else 0)

    def line(self, number: int) -> str:
        if not 0 <= number < len(self._starts):
            return ""
        return self.text[self.start(number) : self.start(number + 1)].rstrip("\r\n")

    def offset(self, line: int, column: int) -> int:
        if line < 0:
            return 0
        if line >= len(self._starts):
            return len(self.text)
        return self.start(line) + min(max(column, 0), len(self.line(line)))

    def position(self, offset: int) -> tuple[int, int]:
        offset = min(max(offset, 0), len(self.text))
        line = self._line_at(offset)
        return line, offset - self.start(line)

    def replace(self, begin: int, end: int, new: str) -> None:
        """Put `new` in place of the text between two offsets."""
        first, last = self._line_at(begin), self._line_at(end)
        if first and begin == self.start(first):
            first -= 1  # a "\n" put here may join the "\r" that ends the line before
        window_begin, window_end = self.start(first), self.start(last + 1)
        grown = len(new) - (end - begin)
        self.text = self.text[:begin] + new + self.text[end:]
        self._move_pivot(last + 1)
        self._shift += grown
        window = self.text[window_begin : window_end + grown]
        found = [window_begin + m.end() for m in _LINE_END.finditer(window)]
        if last + 1 < len(self._starts):
            found.pop()  # the end of the window's last line begins the line behind the window, which is listed already
        self._starts[first + 1 : last + 1] = found
        self._pivot = first + 1 + len(found)

    def _line_at(self, offset: int) -> int:
        starts, pivot = self._starts, self._pivot
        if pivot < len(starts) and offset >= starts[pivot] + self._shift:
            return bisect_right(starts, offset - self._shift, lo=pivot) - 1
        return bisect_right(starts, offset, hi=pivot) - 1

    def _move_pivot(self, line: int) -> None:
        """Let the shift begin at `line`."""
        starts, pivot, shift = self._starts, self._pivot, self._shift
        line = min(line, len(starts))
        if line < pivot:
            starts[line:pivot] = [start - shift for start in starts[line:pivot]]
        elif line > pivot:
            starts[pivot:line] = [start + shift for start in starts[pivot:line]]
        self._pivot = line

"""A document's text under edits: the line index is changed by an edit, not made again.

`Text` answers what a `LineIndex` answers, and takes replacements. A keystroke costs a copy of the string and the lines
it touches, however long the file is. Knows no protocol.
"""

from __future__ import annotations

import re

from graphmend.analysis.syntax.offsets import ShiftableOffsets
from graphmend.analysis.syntax.source import LineIndex

_LINE_END = re.compile(r"\r\n|\r|\n")


class Text(LineIndex):
    """Text with lines counted from 0 and columns in code points, that can be edited in place."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = ShiftableOffsets([0, *(m.end() for m in _LINE_END.finditer(text))])

    @property
    def starts(self) -> list[int]:  # type: ignore[override]
        """Where every line begins; made at each access, for the few who need all of them."""
        return list(self._starts)

    def __len__(self) -> int:
        return len(self._starts)

    def start(self, number: int) -> int:
        """Where a line begins; the text's end past the last line."""
        return self._starts[number] if number < len(self._starts) else len(self.text)

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
        line = self._starts.last_up_to(offset)
        return line, offset - self.start(line)

    def replace(self, begin: int, end: int, new: str) -> None:
        """Put `new` in place of the text between two offsets."""
        first, last = self._starts.last_up_to(begin), self._starts.last_up_to(end)
        if first and begin == self.start(first):
            first -= 1  # a "\n" put here may join the "\r" that ends the line before
        window_begin, window_end = self.start(first), self.start(last + 1)
        grown = len(new) - (end - begin)
        self.text = "".join((self.text[:begin], new, self.text[end:]))
        self._starts.shift(last + 1, grown)
        found = [m.end() for m in _LINE_END.finditer(self.text, window_begin, window_end + grown)]
        if last + 1 < len(self._starts):
            found.pop()  # the end of the window's last line begins the line behind the window, which is listed already
        self._starts.splice(first + 1, last + 1, found)

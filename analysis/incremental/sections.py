"""Sections: the ranges of whole lines that an edited text is divided into, each parsed by itself.

A section is a function of the top level or a method of a top-level class, with the empty lines and comments behind it;
or the text between two of these, which may be empty.
"""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo, ModuleInfo
from graphmend.analysis.syntax.edits import Edit
from graphmend.analysis.syntax.function_source import BEFORE_INDENT
from graphmend.analysis.syntax.function_source import indent as indent_of
from graphmend.analysis.syntax.offsets import ShiftableOffsets
from graphmend.analysis.syntax.source import Source

_LINE_END = re.compile(r"\r\n|\r|\n")
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_IS_EMPTY = re.compile(r"[ \t\f]*(?:#.*)?\Z", re.DOTALL)
_FIRST_CODE = re.compile(r"(?:[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))*([ \t\f]*)(?=[^\s#])")
_HEAD = re.compile(r"^[ \t]*(@|def\b|async\b|class\b)", re.MULTILINE)
_QUOTES = ('"""', "'''")
_DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

#: a statement outside of all functions, and the class whose body it stands in
Outside = tuple[ClassInfo | None, ast.stmt]


class Section:
    """One range of whole lines: a function, or the text between two functions."""

    __slots__ = (
        "broken",
        "fingerprint",
        "indent",
        "index",
        "info",
        "merged",
        "merged_functions",
        "outside",
        "parses_alone",
        "text",
    )

    def __init__(self, index: int, info: FunctionInfo | None, indent: str) -> None:
        self.index = index
        self.info = info
        """The function; None for the text between functions."""
        self.indent = indent
        """The indentation of the function."""
        self.text: str | None = None
        """Its text when it parsed last; None where that is the text that was parsed as a whole."""
        self.outside: list[Outside] = []
        """The statements of a section without a function."""
        self.fingerprint: object = None
        """The fingerprint of the function as of `text`."""
        self.broken = False
        """Whether its current text does not parse."""
        self.parses_alone = True
        """Whether it can be parsed by itself; text inside an `if` that holds functions can't."""
        self.merged = False
        """Whether it was several sections, whose places in it are not known."""
        self.merged_functions: list[FunctionInfo] = []
        """The functions of the sections that were merged into it."""

    @property
    def infos(self) -> list[FunctionInfo]:
        """The functions that it holds."""
        return [*self.merged_functions, *([self.info] if self.info is not None else [])]


class Parsed(NamedTuple):
    """The statements of a section, as parsed by itself."""

    inner: list[ast.stmt]
    """Those of the class body that the section begins in."""
    outer: list[ast.stmt]
    """Those of the top level behind that class."""
    inserted: int = 0
    """By how many lines the line numbers of the nodes are too large."""
    nested: bool = False
    """Whether the function that follows would be nested in another statement than a class."""


def parse(text: str, following: str = "") -> Parsed | None:
    """The statements of a text of whole lines, as they stand before a function that is indented by `following`; None
    where they do not parse."""
    if following:
        text += following + "pass"
    indented = bool(first_indent(text))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(BEFORE_INDENT + text if indented else text.removeprefix("\ufeff")).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    inner: list[ast.stmt] = []
    if indented:
        block = body.pop(0)
        if not isinstance(block, ast.If) or block.orelse:
            return None
        inner = block.body
    nested = False
    if following:  # the `pass` is nobody's statement
        last = body[-1] if body else None
        nested = last is not None and not isinstance(last, ast.ClassDef)
        block_body = inner if last is None else getattr(last, "body", inner)
        nested |= not isinstance(block_body.pop(), ast.Pass)
    return Parsed(inner, body, int(indented), nested)


def first_indent(text: str) -> str | None:
    """The indentation of the first line with code; None where there is none."""
    code = _FIRST_CODE.match(text)
    return None if code is None else code[1]


class Sections:
    """The sections of one text, in order; together they are the whole text."""

    def __init__(self, module: ModuleInfo, source: Source) -> None:
        self.all: list[Section] = []
        begins, lines = [0], [1]
        for info, first, last in sorted(_functions(module, source), key=lambda found: found[1]):
            begin, end = source.lines.offset(first - 1, 0), source.lines.offset(last, 0)
            self._add(None, "")
            begins.append(begin)
            lines.append(first)
            self._add(info, indent_of(source.text[begin:end]))
            begins.append(end)
            lines.append(last + 1)
        self._add(None, "")
        self._begins = ShiftableOffsets([*begins, len(source.text)])
        self._lines = ShiftableOffsets([*lines, len(source.lines) + 1])
        self._parsed_lines = lines
        assert source.tree is not None
        self._place(None, source.tree.body, module)

    def _add(self, info: FunctionInfo | None, indent: str) -> None:
        self.all.append(Section(len(self.all), info, indent))

    def _place(self, owner: ClassInfo | None, body: list[ast.stmt], module: ModuleInfo) -> None:
        """Give the statements outside of functions to their sections."""
        for statement in body:
            first, last = (
                self._parsed_at(first_line(statement)),
                self._parsed_at(statement.end_lineno or statement.lineno),
            )
            if not isinstance(statement, _DEFINITIONS):
                for section in self.all[first : last + 1] if first != last else ():
                    section.parses_alone = False
            if self.all[first].info is None:
                self.all[first].outside.append((owner, statement))
            if owner is None and isinstance(statement, ast.ClassDef):
                cls = module.classes.get(statement.name)
                if cls is not None and cls.node is statement:
                    self._place(cls, statement.body, module)

    def _parsed_at(self, line: int) -> int:
        """The section of a line of the text that was parsed."""
        return bisect_right(self._parsed_lines, line) - 1

    def own(self, section: Section, whole: str) -> str:
        """A section's part of the file's text."""
        return whole[self.begin(section.index) : self.end(section.index)]

    def begin(self, index: int) -> int:
        return self._begins[index]

    def end(self, index: int) -> int:
        return self._begins[index + 1]

    def line(self, index: int) -> int:
        """The first line, from 1."""
        return self._lines[index]

    def moved(self, line: int) -> int:
        """By how many lines a line of the parsed text has moved down, if its section was not edited."""
        index = self._parsed_at(line)
        return self._lines[index] - self._parsed_lines[index]

    def at(self, offset: int) -> int:
        """The section of a place in the text."""
        return min(self._begins.last_up_to(offset), len(self.all) - 1)

    def before(self, index: int) -> str | None:
        """The indentation of the function in front of a section; None where there is none."""
        return self.all[index - 1].indent if index else None

    def following(self, index: int) -> str:
        """The indentation of the function behind a section."""
        return next((s.indent for s in self.all[index + 1 : index + 3] if s.info is not None), "")

    def around(self, edit: Edit, text: str) -> tuple[int, int]:
        """The first and the last of the sections that an edit is in. `text` is the text after the edit.

        An insertion between two sections belongs to the first, if that still ends with a whole line; else to the
        second.
        """
        grown = edit.length - (edit.end - edit.begin)
        if edit.begin == edit.end:
            first = last = self.at(max(edit.begin - 1, 0))
            if edit.begin == self.end(first) and not self._is_cut_well(first, grown, text):
                first = last = self.at(edit.begin)
        else:
            first, last = self.at(edit.begin), self.at(edit.end - 1)
        if first and text[edit.begin - 1 : edit.begin + 1] == "\r\n" and edit.begin == self.begin(first):
            first -= 1
        while last + 1 < len(self.all) and not self._is_cut_well(last, grown, text):
            last += 1
        return first, last

    def _is_cut_well(self, index: int, grown: int, text: str) -> bool:
        """Whether a section still ends at the end of a line after it grew."""
        end = self.end(index) + grown
        return end == len(text) or (text[end - 1 : end] in ("", "\n", "\r") and text[end - 1 : end + 1] != "\r\n")

    def grow(self, index: int, characters: int, lines: int) -> None:
        """A section became longer (or shorter): shift all sections behind it."""
        self._begins.shift(index + 1, characters)
        if lines:
            self._lines.shift(index + 1, lines)

    def has_stray_indent(self, section: Section, text: str) -> bool:
        """Whether a section without a function begins with an indentation that is neither that of the top level nor
        that of the function before it."""
        indent = first_indent(text)
        fits = (
            indent in (None, "")
            or "\f" in indent
            or (section.index > 0 and indent == self.all[section.index - 1].indent)
        )
        return section.info is None and section.parses_alone and not section.merged and not fits

    def behind_function(self, section: Section, text: str) -> str:
        """The first lines of a section, as far as their indentation makes them a part of the function before it."""
        before = self.all[section.index - 1] if section.index else None
        if before is None or before.info is None or before.merged or not before.parses_alone:
            return ""
        end = 0
        for line in _LINES.findall(text):
            if not _IS_EMPTY.match(line.rstrip("\r\n")) and not _is_deeper(indent_of(line), before.indent):
                break
            end += len(line)
        return text[:end] if _is_deeper(first_indent(text) or "", before.indent) else ""

    def give(self, index: int, characters: int, lines: int) -> None:
        """Move the boundary to the next section up by so many characters and lines."""
        self._begins.splice(index + 1, index + 2, [self._begins[index + 1] - characters])
        self._lines.splice(index + 1, index + 2, [self._lines[index + 1] - lines])

    def merge(self, first: int, last: int) -> Section:
        """Make several sections one; it has no findings until the whole text is parsed."""
        merged = self.all[first]
        for other in self.all[first : last + 1]:
            merged.parses_alone &= other.parses_alone
            if other is not merged:
                merged.merged_functions += other.infos
        merged.merged = merged.broken = True
        self._begins.splice(first + 1, last + 1, [])
        self._lines.splice(first + 1, last + 1, [])
        del self._parsed_lines[first + 1 : last + 1]
        del self.all[first + 1 : last + 1]
        for index, section in enumerate(self.all[first:], first):
            section.index = index
        return merged

    def may_parse(self, section: Section, text: str) -> bool:
        """Whether a section that does not parse by itself may parse together with its surroundings in `text`.

        It begins with an unexpected indentation; or it leaves a bracket or block open that the following text, up to
        the next function, completes; or it opens a string that is closed elsewhere.
        """
        index = section.index
        own = text[self.begin(index) : self.end(index)]
        if not section.parses_alone or own.rstrip().endswith("\\") or "\f" in own:
            return True
        if (section.info is not None or section.merged) and first_indent(own) not in (None, section.indent):
            return True
        if not all(_are_even(own, quote) for quote in _QUOTES) and all(_are_even(text, quote) for quote in _QUOTES):
            return True
        if not _may_be_continued(own):
            return False
        behind = next((s.index for s in self.all[index + 1 : index + 3] if s.info is not None), len(self.all) - 1)
        return parse(text[self.begin(index) : self.end(behind)]) is not None


def count_lines(text: str) -> int:
    """How many line ends a text has."""
    return len(_LINE_END.findall(text)) if "\r" in text else text.count("\n")


def split_at_line(text: str, line: int) -> tuple[str, str]:
    """A text up to a line, from 1, and from there on."""
    at = 0
    for _ in range(line - 1):
        found = _LINE_END.search(text, at)
        assert found is not None
        at = found.end()
    return text[:at], text[at:]


def first_line(statement: ast.stmt) -> int:
    """The line on which a statement begins, with its decorators."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min(statement.lineno, *(decorator.lineno for decorator in decorators), statement.lineno)


def _is_deeper(indent: str, than: str) -> bool:
    return indent.startswith(than) and indent != than


def _may_be_continued(text: str) -> bool:
    """Whether a function behind a text may complete it: it ends with a head such as `if x:`, or a decorator."""
    last = next((line for line in reversed(_LINE_END.split(text)) if not _IS_EMPTY.match(line)), "")
    heads = _HEAD.findall(text)
    return ":" in last or (bool(heads) and heads[-1] == "@")


def _are_even(text: str, quote: str) -> bool:
    return text.count(quote) % 2 == 0


def _functions(module: ModuleInfo, source: Source) -> Iterator[tuple[FunctionInfo, int, int]]:
    """The functions that have lines of their own, with the first and the last of them, empty ones included."""
    for info in module.all_functions():
        node = info.node
        assert not isinstance(node, ast.Lambda)
        first, last = first_line(node), node.end_lineno or node.lineno
        while last < len(source.lines) and _IS_EMPTY.match(source.lines.line(last)):
            last += 1
        line = source.lines.line(first - 1)
        if "\f" not in indent_of(line) and line.lstrip().startswith(("def ", "async ", "@")):
            yield info, first, last

"""Incremental analysis of one file: an edit parses the edited section alone and re-analyses the functions that depend
on it.

The whole text is analysed again only where an edit changes which definitions there are (a function or class comes, goes
or gets another name, base or decorator) or what is compiled.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from graphmend.analysis.driver.near import may_drive
from graphmend.analysis.finding import Finding
from graphmend.analysis.findings.recompilations import called_in_sight, is_shown, recompilations
from graphmend.analysis.findings.report import shifted
from graphmend.analysis.findings.suppressions import Suppression, suppressions
from graphmend.analysis.incremental.finding_store import FindingStore, Reach
from graphmend.analysis.incremental.invalidation import Invalidation
from graphmend.analysis.incremental.section_edits import SectionEdits
from graphmend.analysis.incremental.sections import (
    Parsed,
    Section,
    Sections,
    count_lines,
    parse,
)
from graphmend.analysis.interprocedural.session import AnalysisSession
from graphmend.analysis.program.project import Project
from graphmend.analysis.region.region import Region
from graphmend.analysis.region.roots import roots
from graphmend.analysis.settings import Settings
from graphmend.analysis.syntax.edits import Edit, difference
from graphmend.analysis.syntax.source import Source

Definition = ast.FunctionDef | ast.AsyncFunctionDef


class Update(NamedTuple):
    """The state of a file after an edit.

    `findings` are those of all sections that parse. Evidence in a function that was not re-analysed may still quote its
    caller's text as it was; a `check` of the whole text gives the current one. `broken` are the ranges of lines (from
    1) that do not parse: nothing new is known there, and the caller keeps what it showed, moved with the edits.
    `notice` is set where the text does not parse because it is of a newer Python.
    """

    findings: tuple[Finding, ...]
    broken: tuple[tuple[int, int], ...] = ()
    comments: tuple[Suppression, ...] = ()
    """The suppression comments; in a broken range, those that stood there before."""
    notice: str | None = None


class IncrementalAnalysis:
    """The analysis of one file, kept up to date from text to text."""

    def __init__(self, path: str, project: Project | None = None, settings: Settings | None = None) -> None:
        self.path = path
        self.project = project or Project()
        self.settings = settings or Settings()
        self._text = ""
        self._session: AnalysisSession | None = None
        self._sections: Sections
        self._invalidation: Invalidation
        self._finding_store = FindingStore(path)
        self._edits: SectionEdits | None = None
        """Made with the first edit."""
        self._comments: tuple[Suppression, ...] = ()
        self._broken: set[Section] = set()
        self._recompilations: tuple[Finding, ...] = ()
        self._seen: frozenset[str] = frozenset()
        """The functions of which calls are in sight."""
        self._lost = False
        """Whether an edit could not be followed while a part did not parse; the next text that parses starts anew."""

    def update(self, text: str, edit: Edit | None = None) -> Update:
        """The state for a new text. `edit` is how it came from the last one; without it, the difference is computed."""
        if self._session is None:
            return self._from_scratch(Source(text, self.path))
        edit = edit or difference(self._text, text)
        before, self._text = self._text, text
        if not edit.length and edit.begin == edit.end:
            return self._update()
        if self._edits is None:
            assert self._session.module is not None
            self._edits = SectionEdits(
                self._session.module, self._sections, self._invalidation, self._session.driven, before
            )
        first, last = self._sections.around(edit, text)
        if first != last:
            return self._spans(first, last, edit, before)
        return self._inside(self._sections.all[first], edit, before)

    def reach(self) -> dict[str, Reach]:
        """What each class and function of the file reaches, where tracing may start in it."""
        return self._finding_store.reach(self._session.summaries.roots) if self._session is not None else {}

    def close(self) -> None:
        """Release all analysis state and the syntax tree at once: their reference cycles would otherwise live until the
        garbage collector runs."""
        session, self._session = self._session, None
        self._text, self._lost, self._edits = "", False, None
        self._recompilations, self._seen = (), frozenset()
        self._broken.clear()
        self._finding_store = FindingStore(self.path)
        if session is not None and session.module is not None:
            del self._sections, self._invalidation
            session.close()
            session.module.release_trees()

    def _from_scratch(self, source: Source) -> Update:
        """Parse and analyse the whole text. One that does not parse has no findings."""
        self.close()
        self._text = source.text
        self._comments = suppressions(source)
        if not may_drive(self.project, source):
            return Update((), (), self._comments)
        if source.tree is None:
            problem = source.problem
            notice = f"line {problem.line}: {problem.message}" if problem is not None and problem.newer else None
            return Update((), ((1, len(source.lines)),), self._comments, notice)
        self.project.forget(self.path)
        module = self.project.alone(source)
        assert module is not None
        self._session = session = AnalysisSession(module, self.project, self.settings)
        self._sections = Sections(module, source)
        self._invalidation = Invalidation(session, module, self._sections, self._finding_store)
        self._invalidation.start(roots(session, module, session.drive()))
        self._recompilations = tuple(
            one.finding for one in recompilations(session.driven, session.judging) if one.finding.path == self.path
        )
        self._seen = called_in_sight(session.driven)
        self.project.release_trees()
        return self._update()

    def _again(self) -> Update:
        """Analyse the whole text again; while a part of it does not parse, keep the state as it is."""
        source = Source(self._text, self.path)
        if source.tree is not None:
            return self._from_scratch(source)
        self._lost = True
        return self._update()

    def _update(self) -> Update:
        if self._lost:
            lines = self._sections.line(len(self._sections.all)) - 1
            return Update((), ((1, lines),), self._comments)
        broken = tuple(sorted(self._lines(section) for section in self._broken))
        findings = self._finding_store.findings({info for section in self._broken for info in section.infos})
        findings = tuple(f for f in findings if is_shown(f, self._seen, self.settings))
        if self._recompilations:
            moved = (self._where_now(finding) for finding in self._recompilations)
            findings = tuple(sorted((*findings, *moved), key=lambda f: (f.span, f.code)))
        if any(section.info is None for section in self._broken):
            findings = tuple(f for f in findings if not any(a <= f.span.line <= b for a, b in broken))
        return Update(findings, broken, self._comments)

    def _where_now(self, finding: Finding) -> Finding:
        """A finding at the lines that its code has moved to."""
        related = tuple(
            one._replace(span=shifted(one.span, self._sections.moved(one.span.line))) if one.path == self.path else one
            for one in finding.related
        )
        return replace(finding, span=shifted(finding.span, self._sections.moved(finding.span.line)), related=related)

    def _lines(self, section: Section) -> tuple[int, int]:
        """The first and the last line of a section."""
        first = self._sections.line(section.index)
        return first, max(self._sections.line(section.index + 1) - 1, first)

    # -- where an edit is

    def _spans(self, first: int, last: int, edit: Edit, before: str) -> Update:
        """An edit that spans several sections: these are merged until the whole text parses."""
        source = Source(self._text, self.path)
        if source.tree is not None:
            return self._from_scratch(source)
        self._broken -= set(self._sections.all[first : last + 1])
        section = self._sections.merge(first, last)
        self._grow(section, edit, before, parses=False)
        self._broken.add(section)
        return self._update()

    def _inside(self, section: Section, edit: Edit, before: str) -> Update:
        """An edit inside one section."""
        sections, index = self._sections, section.index
        if section.text is None:
            section.text = before[sections.begin(index) : sections.end(index)]
        own = before[sections.begin(index) : edit.begin], before[edit.end : sections.end(index)]
        text = own[0] + self._text[edit.begin : edit.begin + edit.length] + own[1]
        strays = sections.has_stray_indent(section, text)
        parsed = parse(text, sections.following(index) if section.info is None else "") if not strays else None
        self._grow(section, edit, before, parses=parsed is not None)
        behind = sections.behind_function(section, text) if strays else ""
        if behind:
            return self._give_back(section, behind)
        if parsed is None:
            return self._does_not_parse(section)
        section.broken = False
        self._broken.discard(section)
        uncertain = bool(self._recompilations) and section.info is None  # where its statements stand is not known
        if self._lost or uncertain or section.merged or not section.parses_alone:
            return self._again() if not self._broken else self._lose()
        if not (self._takes_over(section, text, parsed)):
            return self._again()
        return self._update()

    def _takes_over(self, section: Section, text: str, parsed: Parsed) -> bool:
        """Whether the new text of a section can be followed; else the whole text must be analysed."""
        assert self._edits is not None
        take_over = self._edits.gap if section.info is None else self._edits.unit
        return take_over(section, text, parsed, self._text)

    def _give_back(self, section: Section, behind: str) -> Update:
        """Lines belong to the function before them now, by their indentation: move the boundary of the sections."""
        function = self._sections.all[section.index - 1]
        if function.text is None:
            function.text = self._sections.own(function, self._text)
        self._sections.give(function.index, -len(behind), -count_lines(behind))
        rest, text = self._sections.own(section, self._text), self._sections.own(function, self._text)
        left, parsed = parse(rest, self._sections.following(section.index)), parse(text)
        if left is None or self._sections.has_stray_indent(section, rest):
            return self._does_not_parse(section)
        section.broken = False
        self._broken.discard(section)
        if self._lost or not self._takes_over(section, rest, left):
            return self._lose() if parsed is None else self._again()
        if parsed is None:
            return self._does_not_parse(function)
        return self._update() if self._takes_over(function, text, parsed) else self._again()

    def _lose(self) -> Update:
        self._lost = True
        return self._update()

    def _does_not_parse(self, section: Section) -> Update:
        strays = self._sections.has_stray_indent(section, self._sections.own(section, self._text))
        touches = any(self._touch(section, other) for other in self._broken)
        if touches or (not strays and self._sections.may_parse(section, self._text)):
            source = Source(self._text, self.path)
            if source.tree is not None:
                return self._from_scratch(source)
        section.broken = True
        self._broken.add(section)
        return self._update()

    def _touch(self, one: Section, other: Section) -> bool:
        """Whether nothing stands between two sections."""
        first, last = sorted((one.index, other.index))
        return first != last and self._sections.end(first) == self._sections.begin(last)

    def _grow(self, section: Section, edit: Edit, before: str, parses: bool) -> None:
        """A section was edited: shift everything behind it."""
        new = self._text[edit.begin : edit.begin + edit.length]
        grown = edit.length - (edit.end - edit.begin)
        index, sections = section.index, self._sections
        lines = 0
        if "\r" in new or "\r" in before[max(edit.begin - 1, 0) : edit.end + 1]:
            begin, end = sections.begin(index), sections.end(index)
            lines = count_lines(self._text[begin : end + grown]) - count_lines(before[begin:end])
        else:
            lines = new.count("\n") - before.count("\n", edit.begin, edit.end)
        old = self._lines(section)
        sections.grow(index, grown, lines)
        self._comments = tuple(self._comments_after(section, old, lines, parses)) if self._may_comment(section) else ()
        if lines:
            self._move(section, lines)

    def _may_comment(self, section: Section) -> bool:
        return bool(self._comments) or "graphmend:" in self._sections.own(section, self._text)

    def _comments_after(self, edited: Section, old: tuple[int, int], lines: int, parses: bool) -> Iterator[Suppression]:
        """The comments after an edit, those of a section that does not parse as they were."""
        first, last = old
        yield from (c for c in self._comments if c.span.line < first)
        if parses:
            yield from (c.moved(first - 1) for c in suppressions(Source(self._sections.own(edited, self._text))))
        else:
            yield from (c for c in self._comments if first <= c.span.line <= last)
        yield from (c.moved(lines) for c in self._comments if c.span.line > last)

    def _move(self, edited: Section, lines: int) -> None:
        """Shift the line numbers of what stands behind an edited section: functions, and what is in no section's
        function (lambdas, inner classes' methods, compile sites)."""
        session, sections = self._session, self._sections
        assert session is not None
        behind = [s.info for s in sections.all[edited.index + 1 :] if s.info is not None]
        for info in behind:
            info.moved(lines)
        self._finding_store.moved(behind)
        known = {info for section in sections.all for info in section.infos}
        for where, info, line in list(self._finding_store.outside(known)):
            info.moved(sections.moved(line) - info.shift)
            self._finding_store.moved([where])
        moved = [(a, self._moved(r, edited, lines)) for a, r in session.summaries.roots]
        if any(new is not old for (_, new), (_, old) in zip(moved, session.summaries.roots, strict=True)):
            session.summaries.roots = moved
            self._finding_store.rebuild(moved)

    def _moved(self, region: Region, edited: Section, lines: int) -> Region:
        line = self._sections.line(edited.index)
        if region.site is None or region.site[0] != self.path or region.site[1].line <= line:
            return region
        return region._replace(site=(self.path, shifted(region.site[1], lines)))

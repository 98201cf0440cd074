"""Mends modules before the program asks for them, while it does something else: those that it has imported, and those
that the last ones will import.

A result is handed out only where the texts that run by then, and the files, are those that it was made with. So what
is mended does not depend on how far this has come.
"""

from __future__ import annotations

import marshal
import warnings
from collections.abc import Callable, Mapping
from typing import NamedTuple

from graphmend.importer.code import mended_code
from graphmend.importer.hook import decoded
from graphmend.importer.outcome import Compiled, Outcome, Texts
from graphmend.importer.text_mender import Surroundings, TextMender
from graphmend.importer.upcoming import Upcoming
from graphmend.workspace.cache import digest

Kept = Callable[[str, str, Texts], bool]
Keep = Callable[[str, str, Outcome, Mapping[str, str]], None]


class _Wanted(BaseException):
    """The program waits for another file; no failure, which a rewrite might catch."""


class ProgramGone(BaseException):
    """The program cannot be asked any more: no failure of a mend."""


class _Made(NamedTuple):
    text: str
    """The text that was mended."""
    among: Mapping[str, str]
    """The texts that ran in place of files meanwhile, by path."""
    outcome: Outcome
    read: Mapping[str, str]


class Ahead:
    """The mends of one program's modules, when it asks for them or ahead of it.

    `is_target` says of a path whether that file is to be mended. `kept` loads what an earlier run has made of a text:
    the program takes it from there, and it is not made again; `keep` does so for a later run. `upcoming` says what it
    will ask for, and `expected` are the surroundings that it begins with: the work begins with them, at once, and
    once more where the first module is imported in others.
    """

    def __init__(
        self,
        mender: TextMender,
        is_target: Callable[[str], bool],
        kept: Kept,
        keep: Keep,
        upcoming: Upcoming,
        expected: Surroundings | None = None,
    ) -> None:
        self._mender, self._is_target, self._upcoming = mender, is_target, upcoming
        self._kept, self._keep = kept, keep
        self._overlay = mender.overlay
        """The texts in place of files once what waits is asked for."""
        self._running: dict[str, str] = {}
        """Those in the program."""
        self._waiting: dict[str, _Made] = {}
        self._foreseen: set[str] = set()
        """The files whose texts have been made, or found to be kept, before they were asked for."""
        self._announced: set[str] = set()
        self._looked_at: dict[str, None] = {}
        self._around = Surroundings((), None)
        self._is_met = False
        """Has the program asked for a module in these surroundings?"""
        self._changed: list[str] = []
        """Files that were seen to be others by now, and are not forgotten yet."""
        if expected is not None and expected.search:
            self._begin(expected)

    # What the program asks for

    def told(self, news: Mapping[str, str]) -> None:
        """Texts that run in the program by now."""
        self._running |= news
        if any(self._overlay.get(path) != text for path, text in news.items()):
            self._put(self._running)

    def mend(self, text: str, path: str, texts: Texts, around: Surroundings) -> tuple[Outcome, Mapping[str, str]]:
        """As `TextMender.mend`."""
        self._meet(around)
        self._look_for_changes()
        if self._changed:
            self._mender.forget(self._changed)
            self._changed.clear()
            self._waiting.clear()
        made = self._waiting.pop(path, None)
        if made is None or made.text != text or not self._holds(made, self._running):
            self._put(self._running)
            made = _Made(text, {}, *self._mended(text, path, texts, around))
        return self._handed_out(path, made)

    def ready(
        self, text: str, path: str, around: Surroundings, news: Mapping[str, str]
    ) -> tuple[Outcome, Mapping[str, str]] | None:
        """What `told` and `mend` would give where it waits already; None otherwise. Work on another file may go on."""
        if not self._is_met and not _alike(around, self._around):
            return None
        self._is_met = True
        made, running = self._waiting.get(path), {**self._running, **news}
        self._look_for_changes()
        if made is None or self._changed or made.text != text or not self._holds(made, running):
            return None
        self._running = running
        del self._waiting[path]
        return self._handed_out(path, made)

    def expect(self, path: str, around: Surroundings, by_program: bool = True) -> None:
        """The program imports the module of this file, and will ask for it; by itself, or for another such module."""
        self._meet(around)
        self._announced.add(path)
        if path not in self._looked_at:
            self._upcoming.imported(path, by_program)

    def order(self) -> list[str]:
        """The files that were looked at, in order: results hold where they are asked for so."""
        return list(self._looked_at)

    def keep_waiting(self) -> None:
        """Keeps what waits for a later run, and for this program once it cannot ask any more."""
        for path, made in self._waiting.items():
            if made.outcome.problem is None:
                self._keep(made.text, path, made.outcome, made.read)

    def _holds(self, made: _Made, running: Mapping[str, str]) -> bool:
        """Is a result what would be made among the texts that run? Those in which nothing was found do not matter. A
        mended text that does not run yet is one that the program has not asked for, or never will: nothing that runs
        can tell, unless the result changes it.
        """
        return all(
            path not in made.read
            or (path in self._foreseen and path not in running and path not in made.outcome.elsewhere)
            for path in _differing(made.among, running)
        )

    def _handed_out(self, path: str, made: _Made) -> tuple[Outcome, Mapping[str, str]]:
        self._looked_at[path] = None
        self._upcoming.asked()
        if made.outcome.text is not None:
            self._running[path] = made.outcome.text
        self._running |= {other: mended.text for other, mended in made.outcome.elsewhere.items()}
        return made.outcome, made.read

    def _meet(self, around: Surroundings) -> None:
        """The first surroundings that a module is imported in are those of all."""
        if self._is_met:
            return
        self._is_met = True
        if not _alike(around, self._around):
            self._begin(around)
            self._put(self._running)

    def _begin(self, around: Surroundings) -> None:
        self._around = around
        self._mender.begin(around)
        self._waiting.clear()
        self._foreseen.clear()
        self._looked_at.clear()
        self._upcoming.begin(self._mender.project)

    def _look_for_changes(self) -> None:
        self._changed += self._mender.changed()

    # What it will ask for

    def follow(self, text: str, path: str) -> None:
        """Looks for the next modules behind the text of one that runs now."""
        self._upcoming.follow(text, path)

    def step(self, waits: Callable[[str], bool] = lambda _: False) -> bool:
        """Mends one module ahead; False where none is to be expected, or it is not known in which surroundings.

        `waits` says whether the program waits for another file than one, for which the work on this one is dropped.
        """
        while self._around.search and (path := self._next()) is not None:
            if path not in self._looked_at:
                self._looked_at[path] = None
                if self._is_target(path):
                    self._mend_ahead(path, waits)
                    return True
                if (text := decoded(path)) is not None:
                    self.follow(text, path)
        return False

    def _next(self) -> str | None:
        return self._upcoming.next(len(self._waiting.keys() - self._announced))

    def _mend_ahead(self, path: str, waits: Callable[[str], bool]) -> None:
        def go_on() -> None:
            try:
                is_wanted = waits(path)
            except Exception as error:
                raise ProgramGone from error
            if is_wanted:
                raise _Wanted

        texts, before = _Known(self._overlay, self._is_target), dict(self._overlay)
        text = texts.now(path)
        if text is None:
            return
        self._foreseen.add(path)
        if self._kept(text, path, texts):
            self._upcoming.kept()
            self._mender.forget(_differing(before, self._overlay))
        else:
            try:
                made = _Made(text, before, *self._mended(text, path, texts, self._around, go_on))
            except (Exception, _Wanted):  # what failed is told when the program asks
                self._put(before)
                self._foreseen.discard(path)
                return
            self._waiting[path] = made
        self.follow(text, path)
        if not self._upcoming.builds_up:
            self._put(before)

    def _mended(
        self, text: str, path: str, texts: Texts, around: Surroundings, go_on: Callable[[], None] = lambda: None
    ) -> tuple[Outcome, Mapping[str, str]]:
        """As `TextMender.mend`, with the codes."""
        outcome, read = self._mender.mend(text, path, texts, around, go_on)
        elsewhere = {
            other: mended._replace(code=self._compiled(other, mended.text, texts))
            for other, mended in outcome.elsewhere.items()
        }
        code = self._compiled(path, outcome.text, texts) if outcome.text is not None else None
        return outcome._replace(code=code, elsewhere=elsewhere), read

    def _compiled(self, path: str, mended: str, texts: Texts) -> Compiled | None:
        if (original := texts.original(path)) is None:
            return None
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            code = mended_code.compiled(path, original, mended)
        if told and self._upcoming.builds_up:
            return None  # the program compiles it, and gets to see warnings; otherwise it has imported the file
        return Compiled(digest(original), marshal.dumps(code))

    def _put(self, texts: Mapping[str, str]) -> None:
        """These texts are in place of files, and no others."""
        if changed := _differing(texts, self._overlay):
            kept = dict(texts)
            self._overlay.clear()
            self._overlay.update(kept)
            self._mender.forget(changed)


def _alike(one: Surroundings, other: Surroundings) -> bool:
    return (one.search, one.torch_version) == (other.search, other.torch_version)


def _differing(texts: Mapping[str, str], others: Mapping[str, str]) -> list[str]:
    return [path for path in {*texts, *others} if texts.get(path) != others.get(path)]


class _Known:
    """The modules' texts as they will run, as far as it is known."""

    def __init__(self, overlay: Mapping[str, str], is_target: Callable[[str], bool]) -> None:
        self._overlay, self._is_target = overlay, is_target

    def now(self, path: str) -> str | None:
        return self._overlay.get(path) or (decoded(path) if self._is_target(path) else None)

    def original(self, path: str) -> str | None:
        return decoded(path)

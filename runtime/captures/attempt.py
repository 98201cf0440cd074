"""The frame that is being compiled: which of its numbers are captured, and which break the graph where they did before.

A number that a tensor decides (`x.item()`, the size of `x.nonzero()`) is a symbol while Dynamo traces. One whose value
must be known later, to branch on or to size something, would break the graph there, which may cost more than a break
where it is read: a whole loop, the function that was inlined. So it is *released*: the frame is traced again, and the
number breaks the graph where it is read, as it does without us. All others stay captured.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from torch._dynamo import config
from torch._dynamo.code_context import code_context
from torch._dynamo.exc import RestartAnalysis

#: how often one code is compiled with values taken as known
COMPILATIONS = 4
#: how often with a truth taken as known
ANSWERS = 2


#: for how many lengths a loop is compiled that is not without us
LENGTHS = 2

ANEW = "a loop in it runs otherwise often from call to call, and it would be compiled anew for each"
_CHANGED = "values were taken as known, and a call had others (--specialize compiles again for each)"


class Anew(Exception):
    """A frame would be compiled once more, and is compiled as without us."""


class Site(NamedTuple):
    """An instruction of the program, which reads a number out of a tensor."""

    code: CodeType
    offset: int
    line: int


class Note(NamedTuple):
    """Why a number that might be captured is not."""

    path: str
    line: int
    function: str
    reason: str


taken_back: list[Note] = []
"""What was tried and taken back, in order."""

kept: dict[tuple[str, int], tuple[str, CodeType]] = {}
"""The path and line of each number or size of a tensor that a compiled graph holds, with the name of its function, and
the code of the frame."""


@dataclass(eq=False)
class Plan:
    """What is known of one code from attempts to compile it, until `torch._dynamo.reset()`."""

    code: CodeType
    released: set[Site] = field(default_factory=set)
    refused: set[Site] = field(default_factory=set)
    """Operations that no backend can take, at which the graph breaks."""
    is_plain: bool = False
    """Is nothing captured at all?"""
    is_parted: bool = False
    """Does its graph break, whatever is taken as known?"""
    compilations: WeakKeyDictionary[Any, int] = field(default_factory=WeakKeyDictionary)
    """How often each converter compiled it with values taken as known."""
    numbers: set[str] = field(default_factory=set)
    """The lines where numbers were taken as known."""
    truths: set[str] = field(default_factory=set)
    """The same of truths, which have two values."""
    begins_in_loop: bool = False
    """Would the graph first break in a loop without us? Then the frame is not compiled at all (torch 2.13)."""
    reads: dict[Site, set[int]] = field(default_factory=dict)
    """How often each site is read in one graph, for all graphs that it was compiled to."""
    has_changed: bool = False
    """Did a call come with other values than those that were taken as known?"""

    def release(self, sites: Iterable[Site], reason: str) -> bool:
        """From now on the numbers read at `sites` break the graph there. False where all of them did so already."""
        new = sorted(set(sites) - self.released, key=lambda site: site.line)
        self.released.update(new)
        for site in new:
            _note(Note(site.code.co_filename, site.line, site.code.co_name, reason))
            kept.pop((site.code.co_filename, site.line), None)
        return bool(new)

    def may_know(self, converter: Any, specialise: bool) -> bool:
        """May values be taken as known? With `specialise` for some sets of values, else until there are others, but
        for both answers where a truth is all that is taken as known.

        What was compiled for values that have changed is lost, which is one graph at most: a frame that breaks all the
        same would lose several, and would compile as often as without us where its values differ from call to call.
        Where compiling anew is an error, nothing is: without us the graph breaks there, and is not compiled anew.
        """
        if config.error_on_recompile or config.fail_on_recompile_limit_hit:
            return False
        compiled = self.compilations.get(converter, 0)
        if self.has_changed and not specialise and (self.numbers or compiled >= ANSWERS):
            _note(Note(self.code.co_filename, self.code.co_firstlineno, self.code.co_name, _CHANGED))
            varied().update(self.truths)
            return False
        return (specialise or not self.is_parted) and compiled < COMPILATIONS

    def is_for_each_length(self, reads: Mapping[Site, int]) -> bool:
        """Would a frame be compiled for a third number of rounds of a loop, whatever counts that loop?"""
        return self.begins_in_loop and any(len(self.reads.get(each, set()) | {reads[each]}) > LENGTHS for each in reads)

    def keeps(self, reads: Mapping[Site, int]) -> None:
        """It is compiled with the numbers of some sites kept, each read so often."""
        for site, count in reads.items():
            self.reads.setdefault(site, set()).add(count)
            kept.setdefault((site.code.co_filename, site.line), (site.code.co_name, self.code))

    def holds(self, line: str, *, is_truth: bool) -> None:
        """A value that is computed at a line is taken as known."""
        (self.truths if is_truth else self.numbers).add(line)

    def changes(self, line: str) -> None:
        """A call has other values than those that decided what is computed at a line."""
        self.has_changed = True
        if line in self.numbers:
            varied().add(line)

    def refuse(self, site: Site, reason: str) -> bool:
        """From now on the graph breaks at the operation at `site`. False where it did so already."""
        if site in self.refused:
            return False
        self.refused.add(site)
        _note(Note(site.code.co_filename, site.line, site.code.co_name, reason))
        return True

    def give_up(self, reason: str = "") -> None:
        """From now on the frame is compiled as without us."""
        self.is_plain = True
        for place in [place for place, (_, code) in kept.items() if code is self.code]:
            del kept[place]
        if reason and not any(each.path == self.code.co_filename and each.reason == reason for each in taken_back):
            _note(Note(self.code.co_filename, self.code.co_firstlineno, self.code.co_name, reason))


def _note(note: Note) -> None:
    if note not in taken_back:
        taken_back.append(note)


def plan_of(code: CodeType) -> Plan:
    """What is known of a code."""
    plan: Plan = code_context.get_context(code).setdefault(__name__, Plan(code))
    return plan


def varied() -> set[str]:
    """The lines where values were taken as known of which a call had others, until `torch._dynamo.reset()`.

    What the frame around them breaks into is not compiled for values of theirs once more, down to the innermost.
    """
    lines: set[str] = code_context.get_context(varied.__code__).setdefault(__name__, set())
    return lines


@dataclass(eq=False)
class Attempt:
    """One attempt to compile a frame."""

    plan: Plan
    converter: Any
    """Dynamo's, of which each call of `torch.compile` makes one."""
    specialises: bool = False
    """May values of small inputs be taken as known?"""
    in_parts: bool = False
    """Also where the graph breaks all the same?"""
    trains_whole: bool = False
    """Do recurrent layers stay in the graph where that runs their forward twice?"""
    used: bool = False
    """Is a value taken as known?"""
    held: dict[Any, Any] = field(default_factory=dict)
    """What guards each input whose values are taken as known."""
    tried: bool = False
    """Did an operation fail, or break the graph, that may do otherwise without the switches?"""
    met: bool = False
    """Was there anything that breaks the graph without us?"""
    reads: Counter[Site] = field(default_factory=Counter)
    """How often the graph at hand reads a number at each site, also one that an input holds and needs no symbol."""
    traced: Any = None
    """The graph at hand: each time that the frame is traced there is another."""
    sites: dict[Any, Site] = field(default_factory=dict)
    """Where each symbol comes from."""
    needed: set[Any] = field(default_factory=set)
    """Symbols that the operation at hand asked for their values, in vain. One that it could do without is none."""
    operations: dict[str, tuple[Any, Site]] = field(default_factory=dict)
    """What each operation of the graph calls, and where that stands in the program, by the operation's name."""
    compiles: bool = False
    """Is a backend at work? What is learned then is in no graph, by which backends keep what they have compiled."""
    failing: Site | None = None
    """The operation at which a backend's own tracing failed."""
    recovery: Any = None
    """What to do where the graph fails when it runs; None where the graph captures nothing."""

    def bind(self, tx: Any, symbols: Iterable[Any]) -> bool:
        """New symbols are made by the instruction that `tx` is at. False where that one is released."""
        if not (symbols := list(symbols)):
            return True
        site = _site(tx)
        if site in self.plan.released:
            self.tried = True
            return False
        self.reads_at(tx)
        self.sites.update(dict.fromkeys(symbols, site))
        return True

    def reads_at(self, tx: Any) -> None:
        """A number is read."""
        self.meets(tx)
        self._traces(tx.output)
        self.reads[_site(tx)] += 1

    def _traces(self, output: Any) -> None:
        if self.traced is not output:
            self.traced = output
            self.reads.clear()

    def meets(self, tx: Any) -> None:
        """What `tx` is at breaks the graph without us."""
        if not self.met:
            self.met = True  # what is inlined breaks where it is called (torch 2.13)
            self.plan.begins_in_loop = (tx if config.nested_graph_breaks else tx.output.root_tx).maybe_has_backedge()

    def adds(self, tx: Any, node: Any) -> bool:
        """An operation comes into the graph. False where it must not."""
        site = _site(tx)
        self.operations[node.name] = node.target, site
        return site not in self.plan.refused

    def leaves(self, tx: Any, reason: str) -> None:
        """The graph breaks at what `tx` is at, as it does without us."""
        site = _site(tx)
        _note(Note(site.code.co_filename, site.line, site.code.co_name, reason))

    def fails(self, node: Any) -> None:
        """A backend's own tracing failed at an operation."""
        target, site = self.operations.get(node.name, (None, None))
        if target is not None and target == node.target:
            self.failing = site

    def needs(self, symbols: Iterable[Any], reason: str) -> None:
        """The values of symbols must be known. Traces again with those released that can be; does nothing else."""
        if self.plan.release({self.sites[symbol] for symbol in symbols if symbol in self.sites}, reason):
            raise RestartAnalysis(restart_reason=f"graphmend: {reason}")

    def breaks(self, log: Any) -> None:
        """The graph breaks. Traces again with nothing taken as known, where something was; does nothing else."""
        if self.used and not self.in_parts:
            self.plan.is_parted = True
            self.specialises = self.used = False
            log.clear()  # what Dynamo saw up to here need not come again
            raise RestartAnalysis(restart_reason="graphmend: the graph breaks, whatever is taken as known")

    @property
    def is_plain(self) -> bool:
        """Was everything done as it would be without us? Then there is no use in tracing the frame again."""
        return not (self.sites or self.reads or self.used or self.tried)

    def completes(self, output: Any) -> None:
        """A graph of this trace is whole. Raises `Anew` where it is one too many of a loop that we alone compile."""
        self._traces(output)  # what another trace read may be released since
        if self.plan.is_for_each_length(self.reads):
            self.plan.give_up(ANEW)
            raise Anew(ANEW)

    def yields(self, reason: str) -> None:
        """The frame cannot be compiled. What was needed in vain is released, or the operation that failed, or all."""
        if self.plan.is_plain:
            return
        needed = {self.sites[symbol] for symbol in self.needed if symbol in self.sites}
        if self.plan.release(needed, reason) or (self.failing is not None and self.plan.refuse(self.failing, reason)):
            return
        if not self.plan.release(self.sites.values(), reason):
            self.plan.give_up(reason)

    def done(self, guards: Any) -> None:
        """The frame is compiled, and used where `guards` say so."""
        if self.recovery is not None:
            self.recovery.guards = guards
        self.plan.keeps(self.reads)
        if self.used:
            self.plan.compilations[self.converter] = self.plan.compilations.get(self.converter, 0) + 1


def _site(tx: Any) -> Site:
    instruction = tx.current_instruction
    return Site(tx.f_code, instruction.offset if instruction.offset is not None else -1, tx.lineno or 0)


class _State(threading.local):
    attempt: Attempt | None = None


_state = _State()


def current() -> Attempt | None:
    """The attempt that this thread is at; None where no frame is compiled, or where nothing is captured."""
    return _state.attempt


@contextmanager
def attempting(attempt: Attempt) -> Iterator[Attempt]:
    """While a frame is compiled in here, numbers may be captured."""
    before, _state.attempt = _state.attempt, attempt
    try:
        yield attempt
    finally:
        _state.attempt = before


@contextmanager
def suspended() -> Iterator[None]:
    """While a frame is compiled in here, it is compiled as without us."""
    before, _state.attempt = _state.attempt, None
    try:
        yield
    finally:
        _state.attempt = before

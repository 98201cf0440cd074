"""Dispatch of events to the rules that subscribed to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from graphmend.analysis.interpreter.events import Call, Event
from graphmend.analysis.program.definitions import ClassInfo
from graphmend.analysis.program.entities import Instance
from graphmend.analysis.region.mode import DEFAULT, Mode
from graphmend.analysis.rules.rule import Break, Context, Rule
from graphmend.analysis.settings import Settings
from graphmend.analysis.torch_facts import TorchFacts

Rules = tuple[Rule, ...]


@lru_cache(maxsize=4)
def _memory(torch: TorchFacts, rules: Rules, ignored: tuple[str, ...]) -> dict[str, Rules]:
    """Cache: the rules that want the calls of a callee; most files call the same ones."""
    return {}


class Judging:
    """The rules of one analysis, and the mode in which they judge."""

    def __init__(
        self,
        rules: Rules,
        settings: Settings,
        torch: TorchFacts,
        is_module: Callable[[Instance], bool],
        classes: Callable[[ClassInfo], Sequence[ClassInfo]],
    ) -> None:
        self._rules = tuple(r for r in rules if not r.preview or settings.tries(r.code))
        self._ignored = settings.ignore_calls
        self._by_event: dict[type[Event], Rules] = {}
        self._by_callee = _memory(torch, self._rules, settings.ignore_calls)
        self._context = Context(torch, DEFAULT, is_module, classes)

    @property
    def mode(self) -> Mode:
        """The tracing mode of the code that is judged."""
        return self._context.mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._context = self._context._replace(mode=mode)

    def rules_for(self, callee: str) -> Rules:
        """The rules that want the calls of `callee`."""
        found = self._by_callee.get(callee)
        if found is None:
            torch = self._context.torch
            found = tuple(r for r in self._of_kind(Call) if r.concerns(callee, torch))
            self._by_callee[callee] = found = () if callee in self._ignored else found
        return found

    def _of_kind(self, kind: type[Event]) -> Rules:
        found = self._by_event.get(kind)
        if found is None:
            found = self._by_event[kind] = tuple(r for r in self._rules if kind in r.events)
        return found

    def verdict(self, event: Event) -> tuple[Rule, Break] | None:
        """The answer of the first rule that judges an event a break; None where none does."""
        rules = self.rules_for(event.callee) if isinstance(event, Call) else self._of_kind(event.__class__)
        for rule in rules:
            said = rule.judge(event, self._context)
            if said is not None:
                return rule, said
        return None

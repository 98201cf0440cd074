"""The order of what a converted branch binds and writes: that in which each of its sides did it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING

from graphmend.transforms.code.liveness import fresh, reads
from graphmend.transforms.if_conversion.blocks import Block
from graphmend.transforms.if_conversion.selection import NotSelectableError
from graphmend.transforms.if_conversion.tensor_predicates import Predicates
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


@answers("order")
def one_order(one: Sequence[str], other: Sequence[str]) -> list[str]:
    """The places that either side changes, in an order that is the order of both."""
    for first, second in ((one, other), (other, one)):
        merged = list(dict.fromkeys([*first, *second]))
        if [place for place in merged if place in second] == list(second):
            return merged
    raise NotSelectableError("the sides change the same places in another order")


@answers("order")
def written_late(then: Block, other: Block) -> set[str]:
    """What gets its value behind the writes of a branch."""
    late = then.late | other.late
    for side in (then, other):
        early = (late & {*side.values, *side.changes}) - side.late
        if early and any(change.how != "store" for change in side.changes.values()):
            raise NotSelectableError(f"`{sorted(early)[0]}` is bound in front of a write on one side only")
    return late


@answers("order")
def changed_alone(names: Iterable[str], *sides: Block) -> None:
    """Refuses where one side changes in place what a name keeps there, and the other side binds the name anew: the old
    memory would be selected as it was in front of the change.
    """
    for name in names:
        for side in sides:
            if name not in side.values and any(place == name or place.startswith(f"{name}[") for place in side.changes):
                raise NotSelectableError(f"`{name}` is changed in place on one side, and bound on the other")


@answers("order")
def in_order(
    facts: FunctionFacts, predicates: Predicates, texts: Mapping[str, str], writes: Sequence[str], late: Set[str]
) -> list[str]:
    """The assignments and the writes into memory, as lines: what is bound `late` behind the writes, the rest in front.
    All texts are about what the names were on entry; a write selects between a new value and what is there just then.
    """
    first = {place: text for place, text in texts.items() if place not in late}
    behind = {place: text for place, text in texts.items() if place in late}
    if not any(_mentions(text, place) for text in (*writes, *behind.values()) for place in first):
        return [*_assignments(first), *writes, *_assignments(behind)]
    kept, bound = [], []
    for place, text in first.items():
        name = fresh(facts, f"new_{place}" if place.isidentifier() else "new_value", predicates.taken)
        predicates.taken.append(name)
        kept.append(f"{name} = {text}")
        bound.append(f"{place} = {name}")
    return [*kept, *writes, *_assignments(behind), *bound]


def _mentions(text: str, place: str) -> bool:
    """Does code read a name, or a place by its text?"""
    return place in reads(ast.parse(text)) if place.isidentifier() else place in text


def _assignments(texts: Mapping[str, str]) -> list[str]:
    """One assignment for each place, or one for all where a later one reads what an earlier one binds."""
    places = list(texts)
    for i, place in enumerate(places):
        for later in places[i + 1 :]:
            if _mentions(texts[later], place):
                return [f"{', '.join(places)} = {', '.join(texts.values())}"]
    return [f"{place} = {text}" for place, text in texts.items()]

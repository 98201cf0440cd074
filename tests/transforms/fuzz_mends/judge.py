"""Compares what is seen of two programs, and names how they differ.

A difference is a text `where.what`: `value.data`, `inputs.alias`, `state.dtype`, `stdout`, `raised A instead of B` and
so on. Numbers that only differ in their last bits are `rounding` instead of `data`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any

Seen = list[dict[str, Any]]

#: what a compiled program is held to: where a warning comes from is TorchDynamo's
COMPILED = ("value", "grads", "inputs", "state", "stdout", "logs", "rng", "modes")
_DEAD = "raised nothing instead of True"
_BEFORE = "before an exception"
_TEXTS = ("stdout", "stderr", "logs", "warnings")
_FIELDS = ("type", "dtype", "shape", "stride", "device", "requires_grad", "leaf", "alias")


def differences(want: Seen, got: Seen) -> dict[str, int]:
    """How two programs differ, each with the number of the first input that shows it."""
    found: dict[str, int] = {}
    for number, (before, after) in enumerate(zip_longest(want, got)):
        before, after = before or {}, after or {}
        differ = _differ(before, after)
        raised = all(what.endswith("another place") or what == "rng before an exception" for what in differ)
        if raised and "raised" in before and set(_within(before.get("state"), after.get("state"))) - {"rounding"}:
            break  # neither has an answer, perhaps for a dtype, and what the program keeps differs from now on
        if raised and any(what.startswith("state") for what in found):
            continue  # what the program keeps differs since an earlier input
        for what in differ:
            found.setdefault(what, number)
        if any(what.startswith("raised") or (_BEFORE in what and ".rounding" not in what) for what in differ):
            break  # what the program keeps differs from now on
    return found


def compiled_differences(want: Seen, got: Seen) -> dict[str, int]:
    """The same for a compiled program: of an exception only that there is one. Where the gradients of a result raise
    in plain Python, AOTAutograd, which traces both at once, raises for the result. What a graph that raises would have
    stored in objects is not stored: those that were left otherwise may differ from then on, and no others.
    """
    left = _left_otherwise(want, got)
    pairs = list(zip_longest(map(_seen_compiled, want), map(_seen_compiled, got), fillvalue={}))
    ends = (number for number, (a, b) in enumerate(pairs) if "raised" in b and _have_no_gradients(a))
    pairs = pairs[: next(ends, None)]  # what the program keeps differs from now on
    raised = next((number for number, (a, _) in enumerate(pairs) if "raised" in a), len(pairs))
    others = [[_with_objects(one, left, inside=False) for one in pair] for pair in pairs[raised + 1 :]]
    found = differences(*_sides([*pairs[: raised + 1], *others]))
    excused = [[{"state": one.get("state")} for one in pair] for pair in pairs[raised + 1 :]]
    excused = [[_with_objects(one, left, inside=True) for one in pair] for pair in excused]
    behind = differences(*_sides(excused)) if "raised" not in " ".join(found) else {}
    return found | {f"{what} {_BEFORE}": raised + 1 + number for what, number in behind.items()}


def given_shared_memory(seen: dict[str, Any]) -> bool:
    """Does an input of a call share its memory with another one?"""
    return bool(re.search(r"'alias': \['[^']*', '\d+'", str(seen.get("inputs"))))


def _sides(pairs: Iterable[Sequence[dict[str, Any]]]) -> tuple[Seen, Seen]:
    listed = list(pairs)
    return [a for a, _ in listed], [b for _, b in listed]


def _left_otherwise(want: Seen, got: Seen) -> set[int]:
    """Which objects of the program the first call that raises leaves otherwise, by their places in its state."""
    pairs = ((a.get("state"), b.get("state")) for a, b in zip(want, got, strict=False) if "raised" in a)
    one, other = next(pairs, (None, None))
    if not isinstance(one, list) or not isinstance(other, list):
        return set()
    return {place for place, (a, b) in enumerate(zip_longest(one, other)) if a != b}


def _with_objects(seen: dict[str, Any], places: set[int], *, inside: bool) -> dict[str, Any]:
    """What is seen, of the objects of the program those in some places, or all others."""
    state = seen.get("state")
    if not isinstance(state, list):
        return seen
    return {**seen, "state": [part for place, part in enumerate(state) if (place in places) == inside]}


def new_differences(want: Seen, got: Seen, control: Seen) -> dict[str, int]:
    """How a compiled program differs from plain Python where the original, compiled by the same backend, does not.

    A graph does not compute what nobody uses, and so does not raise what that would (torch 2.13); that a mended text
    raises as the original does is seen in plain Python.
    """
    own = compiled_differences(want, control)
    if any(what.startswith("raised") for what in own):
        return {}
    return {what: number for what, number in compiled_differences(want, got).items() if what not in {*own, _DEAD}}


def _seen_compiled(seen: dict[str, Any]) -> dict[str, Any]:
    if "raised" in seen:
        return {"raised": True}  # what is raised while it is traced comes before all output
    return {key: seen[key] for key in COMPILED if key in seen}


def _have_no_gradients(seen: dict[str, Any]) -> bool:
    return (seen.get("grads") or [None])[0] == "raised"


def _differ(want: dict[str, Any], got: dict[str, Any]) -> list[str]:
    if want.get("raised") != got.get("raised"):
        if want.get("of_dtypes") and got.get("of_dtypes"):
            return []  # neither text has an answer for these dtypes: the exception is that of the operation met first
        # what follows from an exception says nothing more
        why = " for its dtypes" if got.get("of_dtypes") else ""
        return [f"raised {got.get('raised', 'nothing')} instead of {want.get('raised', 'nothing')}{why}"]
    if "raised" in want and any(
        set(_within(want[key], got[key])) - {"rounding"}
        for key in want
        if key not in (*_TEXTS, "state", "rng", "of_dtypes", "raised")
    ):
        drawn = ["rng before an exception"] if want["rng"] != got["rng"] else []
        return [f"raised {want['raised']} at another place", *drawn]
    found: list[str] = []
    for section in sorted((want.keys() | got.keys()) - {"of_dtypes"}):
        a, b = want.get(section), got.get(section)
        if a == b or (section == "warnings" and _warns_alike(a, b)):
            continue
        if section in ("value", "grads", "inputs", "state"):
            found += dict.fromkeys(f"{section}.{what}" for what in _within(a, b))
        else:
            found.append(_told_otherwise(section, a, b))
    if "raised" in want:
        found = [f"{what} {_BEFORE}" for what in found]
    if any("'nan'" in f"{seen.get('inputs')}{seen.get('value')}" for seen in (want, got)):
        found = [f"{what.removesuffix('data')}nan" if what.endswith(".data") else what for what in found]
    elif any(_is_beyond(seen.get(part), _end(want)) for seen in (want, got) for part in ("inputs", "value")):
        found = [f"{what.removesuffix('data')}beyond" if what.endswith(".data") else what for what in found]
    elif any(what.partition(" ")[0].endswith(".dtype") for what in found):
        found = [re.sub(r"\.data\b", ".promoted", what) for what in found]
    return found


def _end(seen: dict[str, Any]) -> float:
    """Where the numbers of the narrowest dtype among the inputs end, at most those of 64 bits; of whole ones those that
    a double holds.
    """
    text = str(seen.get("inputs"))
    return min([2.0**63, *(end for dtype, end in _ENDS.items() if f"'torch.{dtype}'" in text)])


_ENDS = {"uint8": 2.0**8, "int8": 2.0**7, "int16": 2.0**15, "int32": 2.0**31, "int64": 2.0**53, "float16": 65520.0}


def _is_beyond(seen: Any, end: float) -> bool:
    """Is a finite number among these that a dtype does not hold?"""
    texts = re.findall(r"'-?(\d+(?:\.\d+)?(?:e\+\d+)?)'", str(seen))
    return any(end <= float(text) < math.inf for text in texts)


def _warns_alike(want: Any, got: Any) -> bool:
    """The same warnings, of which those that named a line of the program still do."""
    same = isinstance(want, list) and isinstance(got, list) and [w[:2] for w in want] == [w[:2] for w in got]
    return same and all(now or not before for (*_, before), (*_, now) in zip(want, got, strict=True))


def _within(a: Any, b: Any) -> list[str]:
    if a == b:
        return []
    raising = [isinstance(side, list) and side[:1] == ["raised"] for side in (a, b)]
    if any(raising):
        return ["raised"] if raising[1] else []  # nobody trains what raises in backward
    if isinstance(a, dict) and isinstance(b, dict):
        plain = [field for field in _FIELDS if a[field] != b[field]]
        if "leaf" in plain and "raises" in (a["leaf"], b["leaf"]):
            plain[plain.index("leaf")] = "raised"
        a, b = _in_one_field(a, b), _in_one_field(b, a)
        if a["data"] != b["data"] and "shape" not in plain:
            bound = max(_BOUNDS.get(dtype, 1e-5) for dtype in (a["dtype"], b["dtype"]))
            plain.append("rounding" if _close(a["data"], b["data"], bound) else "data")
        return plain
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        if len(a) == 2 and all(isinstance(v, str) for v in (*a, *b)) and a[0] == b[0]:
            if a[0] == "str" and re.sub(_NUMBER, "", a[1]) != re.sub(_NUMBER, "", b[1]):
                return ["text"]  # whatever its numbers are
            return ["rounding" if _close(a[1:], b[1:], 1e-5) or _rounds_in_text(a[1], b[1]) else "data"]
        return [what for x, y in zip(a, b, strict=True) for what in _within(x, y)]
    return ["kind"]


def _in_one_field(seen: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Real numbers as complex ones, where the other tensor has these."""
    if "complex" in seen["dtype"] or "complex" not in other["dtype"]:
        return seen
    return {**seen, "data": [part for number in seen["data"] for part in (number, "0.0")]}


def _rounds_in_text(a: str, b: str) -> bool:
    """Are these texts of the same tensors of half precision but for their last bits?"""
    bound = next((bound for dtype, bound in _BOUNDS.items() if dtype in a), 0.0)
    one, two = ([*re.findall(_NUMBER, text)] for text in (a, b))
    same = re.sub(rf"{_NUMBER}|\s+", "", a) == re.sub(rf"{_NUMBER}|\s+", "", b)
    return same and len(one) == len(two) and _close(one, two, bound)


_NUMBER = r"-?\b\d+(?:\.\d*)?(?:e[-+]?\d+)?"
_DTYPE = r"torch\.(?:bool|u?int\d+|b?float\d+|complex\d+)\b"


def _told_otherwise(section: str, a: Any, b: Any) -> str:
    """How output differs: in the last bits of its numbers, in the dtypes that it names besides, or in what it says."""
    if _coarse(a) == _coarse(b):
        return f"{section}.rounding"
    one, two = (re.sub(rf",\s+dtype={_DTYPE}|{_DTYPE}", "", _coarse(text)) for text in (a, b))
    if one == two or _as_floats(one) == _as_floats(two):
        return f"{section}.dtype"
    return section


def _as_floats(text: str) -> str:
    """Output in which the whole numbers of tensors are written as floating ones are."""
    return re.sub(r"(?<=\d)\.(?=[,\]) ])|\s+", "", text)


def is_amplified(want: Seen, nudged: Seen) -> bool:
    """Does a program itself give other values where its operations round otherwise?"""
    return any(what.endswith((".data", ".nan")) for what in differences(want, nudged))


def _coarse(text: Any) -> str:
    """Output without the last digits of its numbers."""
    return re.sub(r"-?\d+\.\d+(e[-+]?\d+)?", lambda number: f"{float(number[0]):.3g}", str(text))


#: how far rounding may take numbers of a dtype, relative to the largest of their tensor
_BOUNDS = {"torch.float16": 4e-3, "torch.bfloat16": 4e-2}


def _close(a: list[str], b: list[str], bound: float) -> bool:
    """Are these the same numbers but for their last bits?"""
    try:
        pairs = [(float(x), float(y)) for x, y in zip(a, b, strict=True)]
    except ValueError:
        return False
    largest = max((abs(n) for pair in pairs for n in pair if math.isfinite(n)), default=0.0)
    return all(x == y or abs(x - y) <= bound * largest for x, y in pairs if x == x or y == y)

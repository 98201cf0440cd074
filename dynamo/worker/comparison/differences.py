"""How two outcomes differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from . import kinds, rounding
from .kinds import Difference
from .outcome import Outcome
from .snapshot import Entries, Entry

FLAG_FIELDS = frozenset({"wants", "leaf", "training"})
SHARING_FIELDS = frozenset({"same", "memory", "shared", "again"})
_NUMBERS = frozenset({"int", "float", "bool", "NoneType"})


class Differences:
    """Collects what differs between two outcomes of one run."""

    def __init__(
        self, run: str, old: Outcome, new: Outcome, texts: bool, noise: Mapping[str, float] | None = None
    ) -> None:
        """`noise` is what the gradients of the original change by where its inputs change in their last digit."""
        self.run = run
        self.found: list[Difference] = []
        self.remarks: list[str] = []
        self.largest = 0.0
        self.rounding = 0.0
        if old["raised"] != new["raised"]:
            bare = f"{_bare(new)} where the original {_bare(old)}"
            self._note(kinds.EXCEPTION, "", f"{_did(new)} where the original {_did(old)}", bare)
            return
        if old["message"] != new["message"]:
            self.remarks.append(f"{run}: {_did(new)} where the original {_did(old)}")
        if texts:
            self._text("prints", old["text"].splitlines(), new["text"].splitlines())
            self._text("logs", old["records"], new["records"])
        for name, state in old["random"].items():
            if new["random"].get(name, state) != state:
                self._note(kinds.RANDOM, name, "is in another state")
        for name, state in old["switches"].items():
            if new["switches"].get(name, state) != state:
                self._note(kinds.STATE, name, f"is {new['switches'][name]} after it instead of {state}")
        self._results(old["result"], new["result"])
        self._changes(old["changed"], new["changed"])
        self.noise = noise or {}
        self.infinite = any(g is not None and not bool(g.isfinite().all()) for g in old["gradients"].values())
        self.scale = max((float(g.abs().max()) for g in old["gradients"].values() if _has_numbers(g)), default=0.0)
        for name in {**old["gradients"], **new["gradients"]}:
            self._gradient(name, old["gradients"].get(name), new["gradients"].get(name))

    def _note(self, kind: str, place: str, detail: str, bare: str | None = None) -> None:
        """`bare` is the detail without what the checked code itself said, where that is another text."""
        self.found.append(Difference(kind, self.run, place, detail, detail if bare is None else bare))

    def _text(self, verb: str, old: list[str], new: list[str]) -> None:
        if old == new:
            return
        if sorted(old) == sorted(new):
            bare = f"{verb} in another order"
            self._note(kinds.OUTPUT_ORDER, "", f"{bare}: {_first_difference(old, new)}", bare)
        elif verb == "prints" or not any(d.kind == kinds.OUTPUT_TEXT for d in self.found):
            self._note(kinds.OUTPUT_TEXT, "", f"{verb} {_first_difference(old, new)}", f"{verb} something else")

    # results

    def _results(self, old: Entries, new: Entries) -> None:
        for place in {**old, **new}:
            if place not in old or place not in new:
                lacks = "lacks" if place in old else "has"
                another = "has another structure"
                self._note(kinds.VALUE, "result", f"{another}: it {lacks} {place}", another)
                return
            if _form(old[place]) != _form(new[place]):
                is_now, was = _form(new[place]), _form(old[place])
                self._note(kinds.VALUE, place, f"has another structure: it is {is_now} instead of {was}")
                return
        for place, entry in old.items():
            self._entry(place, entry, new[place], "")

    # state

    def _changes(self, old: Entries, new: Entries) -> None:
        told: list[str] = []
        for place in sorted({**old, **new}):
            base = kinds.ARGUMENT_STATE if place.startswith("argument") else kinds.STATE
            a, b = old.get(place), new.get(place)
            if a is not None and b is not None:
                self._entry(place, a, b, base)
                continue
            if any(place.startswith((f"{above}.", f"{above}[")) for above in told):
                continue
            told.append(place)
            only = a or b or {}
            fields = frozenset(only["changed"])
            kind = kinds.FLAGS if fields <= FLAG_FIELDS else kinds.ALIASING if fields <= SHARING_FIELDS else base
            form = "is left as it was, where it becomes {} in the original"
            if b is not None:
                form = "becomes {}, where the original leaves it as it was"
            said, bare = (form.format(f"{f(only)} ({', '.join(sorted(fields))})") for f in (_changed_to, _bare_form))
            self._note(kind, place, said, bare)

    def _entry(self, place: str, a: Entry, b: Entry, base: str) -> None:
        """`base` is the kind of what differs in a state; "" for a result, whose differences have kinds of their own."""
        if _form(a) != _form(b):
            self._note(base or kinds.VALUE, place, f"is {_form(b)} instead of {_form(a)}")
            return
        if a.get("same", "") != b.get("same", ""):
            said = f"is {_object(b, place)} instead of {_object(a, place)}"
            self._note(kinds.ALIASING, place, said, "is another object")
        elif a.get("memory", "") != b.get("memory", ""):
            said = f"lies in {_memory(b, place)} instead of {_memory(a, place)}"
            self._note(kinds.ALIASING, place, said, "lies in other memory")
        if a.get("role", "") != b.get("role", ""):
            is_now, was = (entry.get("role") or "a plain attribute" for entry in (b, a))
            self._note(base or kinds.VALUE, place, f"is {is_now} instead of {was}")
        if "dtype" in a:
            self._tensor(place, a, b, base)
            return
        if a.get("training") != b.get("training"):
            self._note(kinds.FLAGS, place, f"has training={b.get('training')} instead of {a.get('training')}")
        for name in ("length", "digest", "hooks"):
            if a.get(name) != b.get(name):
                said = f"has {name} {b.get(name)} instead of {a.get(name)}"
                self._note(base or kinds.VALUE, place, said, f"has another {name}")
        if a.get("text") != b.get("text"):
            gap = rounding.between_numbers(a["number"], b["number"]) if "number" in a and "number" in b else None
            if gap is not None and gap.rounding:
                self._gap(place, gap, base or kinds.VALUE)
            else:
                shown = f"is {_short(b.get('text'))} instead of {_short(a.get('text'))}"
                numbers = all(entry.get("type") in _NUMBERS for entry in (a, b))
                self._note(
                    base or kinds.VALUE, place, shown, shown if numbers else f"is another {b.get('type', 'value')}"
                )

    def _tensor(self, place: str, a: Entry, b: Entry, base: str) -> None:
        if a["class"] != b["class"]:
            self._note(base or kinds.FLAGS, place, f"is a {b['class']} instead of a {a['class']}")
        if a["dtype"] != b["dtype"]:
            self._note(base or kinds.DTYPE, place, f"is {b['dtype']} {b['shape']} instead of {a['dtype']} {a['shape']}")
        if a["shape"] != b["shape"]:
            self._note(base or kinds.SHAPE, place, f"is {b['dtype']} {b['shape']} instead of {a['dtype']} {a['shape']}")
        if (a["device"], a["layout"]) != (b["device"], b["layout"]):
            is_now, was = (f"{entry['device']}, {entry['layout']}" for entry in (b, a))
            self._note(base or kinds.DEVICE, place, f"is on {is_now} instead of {was}")
        elif a["shape"] == b["shape"]:
            for name, words in (("strides", "strides"), ("offset", "storage offset")):
                if a.get(name) != b.get(name):
                    self._note(base or kinds.STRIDES, place, f"has {words} {b.get(name)} instead of {a.get(name)}")
        for name, words in (("wants", "requires_grad"), ("leaf", "is_leaf")):
            if a[name] != b[name]:
                kind = kinds.FLAGS if base else kinds.REQUIRES_GRAD
                self._note(kind, place, f"has {words}={b[name]} instead of {a[name]}")
        if a.get("shared") != b.get("shared"):
            self._note(kinds.ALIASING, place, f"has is_shared()={b.get('shared')} instead of {a.get('shared')}")
        self._values(place, a, b, base or kinds.VALUE)

    def _values(self, place: str, a: Entry, b: Entry, kind: str) -> None:
        old, new = a.get("tensor"), b.get("tensor")
        if bool(a.get("written")) != bool(b.get("written")):
            is_now, was = ("is written" if entry.get("written") else "keeps its values" for entry in (b, a))
            self._note(kind, place, f"{is_now} where it {was} in the original")
        elif old is not None and new is not None and old.numel() == new.numel():
            gap = rounding.between(old.reshape(-1), new.reshape(-1))
            if gap is not None:
                self._gap(place, gap, kind)

    def _gap(self, place: str, gap: rounding.Gap, kind: str) -> None:
        self.largest = max(self.largest, gap.largest)
        if gap.rounding:
            self.rounding = max(self.rounding, gap.relative)
        self._note(kinds.ROUNDING if gap.rounding else kind, place, gap.words())

    def _gradient(self, name: str, a: Any, b: Any) -> None:
        place = f"gradient of {name}"
        if a is None or b is None:
            present = a if b is None else b
            if present is not None:
                # where the original's own gradients are not finite, a side that is not taken has 0 times infinity
                zeros = not bool((present.nan_to_num(nan=0.0) if self.infinite else present).any())
                kind = kinds.ZERO_GRADIENTS if zeros else kinds.GRADIENTS
                self._note(kind, place, f"is {_shown(b)} instead of {_shown(a)}")
        elif a.shape != b.shape or a.dtype != b.dtype:
            self._note(kinds.GRADIENTS, place, f"is {_shown(b)} instead of {_shown(a)}")
        else:
            gap = rounding.between(a, b)
            if gap is not None:
                gap = rounding.of_terms(gap, a.dtype, self.noise.get(name, 0.0), self.scale)
                self._gap(place, gap, kinds.GRADIENTS)


def _has_numbers(gradient: Any) -> bool:
    return gradient is not None and gradient.numel() > 0


def _form(entry: Entry) -> str:
    return "a Tensor" if "dtype" in entry else f"a {entry.get('type', 'lost')}"


def _changed_to(entry: Entry) -> str:
    if "dtype" in entry:
        return f"{entry['dtype']} {entry['shape']}"
    return _short(entry["text"]) if "text" in entry else _form(entry)


def _bare_form(entry: Entry) -> str:
    return _changed_to(entry) if "dtype" in entry else _form(entry)


def _object(entry: Entry, place: str) -> str:
    name = entry.get("same", "")
    return "a new object" if not name else "the same object" if name == place else f"the object that {name} is"


def _memory(entry: Entry, place: str) -> str:
    name = entry.get("memory", "")
    return "memory of its own" if name in ("", place) else f"the memory of {name}"


def _did(outcome: Outcome) -> str:
    if not outcome["raised"]:
        return "returns"
    return f"raises {outcome['raised']}" + (f": {outcome['message']}" if outcome["message"] else "")


def _bare(outcome: Outcome) -> str:
    return f"raises {outcome['raised']}" if outcome["raised"] else "returns"


def _shown(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return str(value)
    return f"{'zeros of ' if not bool(value.any()) else ''}{value.dtype} {list(value.shape)}"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _first_difference(old: list[str], new: list[str]) -> str:
    for a, b in zip([*old, ""], [*new, ""]):  # noqa: B905
        if a != b:
            return f"{_short(b)!r} instead of {_short(a)!r}"
    return "a different number of lines"

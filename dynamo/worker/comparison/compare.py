"""The mended text beside the original: the same inputs and weights, each run eagerly and compiled, then what differs.

Two processes do it, one for each text. The first keeps what came of its runs in a file; the second makes the same
runs and compares. What the original does differently when compiled already is not the mend's doing and is left out.
"""

from __future__ import annotations

import contextlib
import functools
import os
import types
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..inputs.variation import nudges, variants
from . import file_variables, kinds, outcome, output, rounding
from .differences import Differences
from .kinds import Difference
from .memento import BYTES, Memento
from .outcome import Outcome, Scene
from .snapshot import Walk

Runs = list[dict[str, Any]]

WAYS = (
    ("eager", ""),
    ("eager, inputs want", "inputs that want gradients"),
    ("eager, again", "called a second time"),
    ("compiled", "compiled"),
    ("compiled, inputs want", "compiled, inputs that want gradients"),
)
"""How a run is made, and what is said of it. Texts are compared of the first only."""


def file_for(folder: str, target: str) -> str:
    return os.path.join(folder, "".join(c if c.isalnum() else "_" for c in target) + ".pt")


def keep(folder: str, target: str, data: dict[str, Any]) -> None:
    with _files_of_any_size():
        torch.save(data, file_for(folder, target))


@contextlib.contextmanager
def _files_of_any_size() -> Iterator[None]:
    """Files are limited for what the checked code writes; what is kept of a run is as large as the model."""
    try:
        import resource
    except ImportError:  # Windows
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@functools.lru_cache(maxsize=1)
def kept(folder: str, target: str) -> dict[str, Any] | None:
    """What the first process kept; None where it did not get so far. It is only read, as several ask for it."""
    path = file_for(folder, target)
    return torch.load(path, weights_only=True) if os.path.exists(path) else None


def state(instance: Any) -> dict[str, Any]:
    """A copy of a module's tensors, except of those that get their shape in the first call."""
    if not isinstance(instance, torch.nn.Module):
        return {}
    tensors = {name: v for name, v in instance.state_dict().items() if isinstance(v, torch.Tensor)}
    return {name: v.detach().clone() for name, v in tensors.items() if not torch.nn.parameter.is_lazy(v)}


def restore(instance: Any, tensors: dict[str, Any]) -> None:
    if tensors:
        instance.load_state_dict(tensors, strict=False)


class Maker:
    """Makes the runs of one text. `arguments` come from the session; `module` is the checked file.

    Each run begins with what `memento` (of the instance) and `beginning` (of the file's variables) remember, and with
    `tensors` as weights.
    """

    def __init__(
        self,
        instance: Any,
        tensors: dict[str, Any],
        arguments: Callable[[Any], Any],
        module: types.ModuleType | None,
        memento: Memento,
        beginning: Beginning,
    ) -> None:
        self.instance = instance
        self.arguments = arguments
        self.beginning = beginning
        self.tensors = tensors
        memento.restore()
        restore(instance, tensors)
        self.memento = Memento([instance])
        variables = beginning.memento.copies
        self.scene = Scene(instance, lambda: file_variables.of(module), {**variables, **self.memento.copies})

    def initial(self) -> dict[str, Any]:
        """How the module is made, before any call."""
        if not isinstance(self.instance, torch.nn.Module):
            return {}
        return Walk({"self": self.instance}, {}).entries

    def noise(self, eager: Callable[..., Any], run: Any, outcomes: dict[str, Outcome]) -> dict[str, float]:
        """What the gradients of a run change by where its inputs and weights change in their last digit."""
        way = "eager, inputs want" if "eager, inputs want" in outcomes else "eager"
        if outcomes[way]["raised"] or not outcomes[way]["gradients"]:
            return {}
        wants = way == "eager, inputs want"
        nudged = self._one(eager, run, force_eager=True, inputs_want=wants, nudged=True)["gradients"]
        found: dict[str, float] = {}
        for name, gradient in outcomes[way]["gradients"].items():
            if gradient is not None and nudged.get(name) is not None:
                gap = rounding.between(gradient, nudged[name])
                found[name] = gap.largest if gap is not None else 0.0
        return found

    def run(self, eager: Callable[..., Any], compiled: Callable[..., Any] | None, run: Any) -> dict[str, Outcome]:
        """The outcomes of a run; without `compiled`, of eager mode only."""
        wants = outcome.has_inputs(self.arguments(run))
        parameters = isinstance(self.instance, torch.nn.Module) and any(
            p.requires_grad for p in self.instance.parameters()
        )
        found = {"eager": self._one(eager, run, force_eager=True)}
        if wants:
            found["eager, inputs want"] = self._one(eager, run, force_eager=True, inputs_want=True)
        if run.variant == variants.GIVEN:  # state that the first call leaves decides what the next one does
            found["eager, again"] = self._one(eager, run, force_eager=True, again=True)
        if compiled is not None:
            found["compiled"] = self._one(compiled, run)
            if wants and not parameters:
                found["compiled, inputs want"] = self._one(compiled, run, inputs_want=True)
        return found

    def _one(
        self,
        call: Callable[..., Any],
        run: Any,
        *,
        force_eager: bool = False,
        inputs_want: bool = False,
        again: bool = False,
        nudged: bool = False,
    ) -> Outcome:
        self.beginning.restore()
        self.memento.restore()
        if not self.memento.complete:
            restore(self.instance, self.tensors)
        output.forget_cached()
        arguments = nudges.arguments(self.arguments(run)) if nudged else self.arguments(run)
        variants.seed(0)
        with contextlib.ExitStack() as stack:
            stack.enter_context(variants.applied(self.instance, run.variant))
            if nudged:
                stack.enter_context(nudges.weights(self.instance))
            if force_eager:
                with torch.compiler.set_stance("force_eager"):
                    if again:
                        outcome.of_call(call, variants.others_of(arguments), self.scene)
                    return outcome.of_call(call, arguments, self.scene, inputs_want=inputs_want)
            return outcome.of_call(call, arguments, self.scene, inputs_want=inputs_want)


class Beginning:
    """The variables of a file as its import left them; of tensors, the values of so many bytes."""

    def __init__(self, module: types.ModuleType | None, bytes_: float = BYTES) -> None:
        self.memento = Memento(file_variables.of(module).values(), bytes_)
        self._rebind = file_variables.rebinding(module)

    def restore(self) -> None:
        self._rebind()
        self.memento.restore()


def differences(before: dict[str, Any], after: dict[str, Any], labels: list[str]) -> dict[str, Any]:
    """The comparison of all runs, as the report has it."""
    found = Comparison()
    found.made(before["initial"], after["initial"])
    found.rounds = rounds_compiled(before["runs"])
    for label, old, new in zip(labels, before["runs"], after["runs"]):  # noqa: B905
        other = old["variant"][0] in variants.OTHER
        found.run(label, old["outcomes"], new["outcomes"], other=other, noise=old["noise"])
    return {
        "runs": len(after["runs"]),
        "differences": [difference.line() for difference in found.found],
        "silenced": [line for _, line in found.silenced],
        "gradients": found.gradients,
        "largest": found.largest,
        "rounding": found.rounding,
        "found": [difference.data() for difference in [*found.found, *found.lost()]],
        "remarks": found.remarks,
        "seconds": [seconds(each["runs"]) for each in (before, after)],
    }


def seconds(runs: Runs) -> float:
    """Processor time of all calls in eager mode."""
    eager = (o for run in runs for way, o in run["outcomes"].items() if way.startswith("eager"))
    total: float = sum(outcome["seconds"] for outcome in eager)
    return total


def rounds_compiled(runs: Runs) -> frozenset[str]:
    """Where the original rounds otherwise when compiled, in any run: compiled code gives up after some variants."""
    found: set[str] = set()
    for run in runs:
        for way in (way for way, _ in WAYS if way.startswith("compiled")):
            old = run["outcomes"].get(way.replace("compiled", "eager"))
            if old is not None and way in run["outcomes"]:
                own = Differences("", old, run["outcomes"][way], texts=False).found
                found |= {d.place for d in own if d.kind == kinds.ROUNDING}
    return frozenset(found)


class Comparison:
    """Collects what differs over all runs; a thing that differs in several ways of one run is told once."""

    def __init__(self) -> None:
        self.found: list[Difference] = []
        self.silenced: list[tuple[str, str]] = []
        self.remarks: list[str] = []
        self.rounds: frozenset[str] = frozenset()
        """Places in which the original itself rounds otherwise when it is compiled."""
        self.gradients = 0
        self.largest = 0.0
        self.rounding = 0.0

    def made(self, old: dict[str, Any], new: dict[str, Any]) -> None:
        """Compares the modules as they were made."""
        empty: Outcome = {"raised": None, "message": "", "random": {}, "switches": {}, "result": {}, "gradients": {}}
        old, new = ({p: {**e, "changed": ["made"]} for p, e in entries.items()} for entries in (old, new))
        self._take(Differences("before any call", {**empty, "changed": old}, {**empty, "changed": new}, False), set())

    def run(
        self,
        label: str,
        old: dict[str, Outcome],
        new: dict[str, Outcome],
        *,
        other: bool = False,
        noise: dict[str, float] | None = None,
    ) -> None:
        """`other`: the inputs are of another rank or type than those that were given."""
        told: set[tuple[str, str]] = set()
        names: set[str] = set()
        for way, words in WAYS:
            original = old.get(way.replace("compiled", "eager"))
            if original is None or way not in old or way not in new:
                continue
            if way.endswith("inputs want") and original["raised"] and not old["eager"]["raised"]:
                continue  # such inputs are not what the original takes
            run = f"{label}, {words}" if words else label
            mended = Differences(run, original, new[way], texts=way == "eager", noise=noise)
            if way.startswith("compiled"):
                own = set(Differences(run, original, old[way], texts=False).found)
                mended.found = [d for d in mended.found if d not in own and not self._rounds_anyhow(d)]
            else:
                names |= original["gradients"].keys()
                self.remarks += mended.remarks
            if other:
                mended.found = [_elsewhere(difference) for difference in mended.found]
                mended.largest = 0.0
            self._take(mended, told)
        self.gradients += len(names)
        for line in _lost(old, new):
            if line not in (text for _, text in self.silenced):
                self.silenced.append((label, line))

    def _rounds_anyhow(self, difference: Difference) -> bool:
        return difference.kind == kinds.ROUNDING and difference.place in self.rounds

    def lost(self) -> list[Difference]:
        """What is silenced, as differences."""
        return [
            Difference(kinds.OUTPUT_TEXT, f"{label}, compiled", "", f"does not print {line!r}", "prints less")
            for label, line in self.silenced
        ]

    def _take(self, differences: Differences, told: set[tuple[str, str]]) -> None:
        self.found += [d for d in differences.found if (d.kind, d.place) not in told]
        told.update((d.kind, d.place) for d in differences.found)
        self.largest = max(self.largest, differences.largest)
        self.rounding = max(self.rounding, differences.rounding)


def _elsewhere(difference: Difference) -> Difference:
    return difference if difference.kind == kinds.ROUNDING else difference._replace(kind=kinds.OTHER_INPUTS)


def _lost(old: dict[str, Outcome], new: dict[str, Outcome]) -> list[str]:
    """Lines that the original prints, eagerly and compiled, and the mended text prints less often when compiled."""
    if "compiled" not in old or "compiled" not in new:
        return []
    printed, own = (Counter(one["compiled"]["text"].splitlines()) for one in (new, old))
    written = Counter(old["eager"]["text"].splitlines())
    return [line for line, times in written.items() if line.strip() and printed[line] < min(times, own[line])]

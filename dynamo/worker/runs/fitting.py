"""Finds inputs that a target accepts: the first example whose eager run does not fail, on the first device whose memory
does, with smaller batches where that helps.
"""

from __future__ import annotations

import bdb
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch

from ..comparison import compare, switches
from ..comparison.memento import BYTES, Memento
from ..discover import Target
from ..errors import Unusable, bare, describe
from ..inputs.examples import Arguments, Example
from ..inputs.variation import structure, variants
from ..inputs.variation.variants import GIVEN, Variant
from ..recording import lines, positions
from . import devices

SMALLEST_PART = 16


class MemoryBudget:
    """What memory allows: the device, and to how many parts batches are cut."""

    def __init__(self, possible: list[str], parts: int = 1) -> None:
        self.possible = possible
        self.parts = parts
        self.notes: list[str] = []

    @property
    def device(self) -> str:
        return self.possible[0]

    def reduce(self) -> bool:
        """Memory was short: half the batch, at last another device. False where nothing is left to try."""
        if self.device.startswith("cuda"):
            torch.cuda.empty_cache()
        if self.parts < SMALLEST_PART:
            self.parts *= 2
            return True
        return self.next_device("ran out of memory")

    def next_device(self, why: str) -> bool:
        if len(self.possible) == 1:
            return False
        self.notes = [f"on {self.possible[1]}: {self.device} {why}"]
        self.possible, self.parts = self.possible[1:], 1
        return True

    def said(self) -> list[str]:
        """What the user is to know of it."""
        if self.parts == 1:
            return self.notes
        return [*self.notes, f"batches are cut to 1/{self.parts}: out of memory on {self.device}"]


class Run:
    """One call: which arguments of the example, which variant of them, and what came of it."""

    def __init__(self, call: int, variant: Variant) -> None:
        self.call = call
        self.variant = variant
        self.raised: BaseException | None = None
        self.value: Any = None
        self.lines: dict[str, set[int]] = {}
        self.steps: set[lines.Step] = set()
        self.seconds = 0.0
        """Of the processor."""


class Fit:
    """An example that the target accepts: the instance, what makes its arguments, and where it runs."""

    def __init__(
        self,
        target: Target,
        example: Example,
        budget: MemoryBudget,
        contains: Callable[[str], bool],
        *,
        remember: bool = False,
    ) -> None:
        self.target = target
        self.example = example
        self.device = budget.device
        self.parts = budget.parts
        self.contains = contains
        variants.seed(0)
        self.instance = devices.move(example.build(), budget.device)
        variants.seed(0)
        self.calls = len(example.inputs())
        self.state = compare.state(self.instance)
        self.memento = Memento([self.instance], BYTES if remember else 0)

    @property
    def callable(self) -> Any:
        return self.instance if self.target.method is None else getattr(self.instance, self.target.method)

    def arguments(self, run: Run) -> Arguments:
        made = variants.arguments(lambda: self.example.inputs()[run.call], run.variant)
        if self.parts > 1:
            made = structure.part_of_batch(made, self.parts)
        return devices.move(made, self.device)  # type: ignore[no-any-return]

    def eager(self, run: Run) -> Run:
        """Makes a run without compiling. Raises where memory is short; whatever else is raised is kept in the run."""
        tracer = lines.LineTracer(self.contains)
        compare.restore(self.instance, self.state)
        modes = switches.Kept()
        try:
            arguments = self.arguments(run)
            call = self.callable
            variants.seed(0)
            began = time.process_time()
            with variants.applied(self.instance, run.variant), torch.compiler.set_stance("force_eager"), tracer:
                run.value = call(*arguments[0], **arguments[1])
            run.seconds = time.process_time() - began
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            run.raised = error
        finally:
            modes.restore()
        run.lines, run.steps = tracer.lines, tracer.steps
        return run


class Tried(NamedTuple):
    """Why inputs did not fit; `bare` is that without what the checked code itself said, `lines` how many of the
    project's lines ran.
    """

    said: str
    bare: str
    lines: int


class Finder:
    """Looks for inputs of one target. `budget` is what is left to try when memory is short later."""

    def __init__(
        self,
        target: Target,
        contains: Callable[[str], bool],
        budget: MemoryBudget,
        until: float,
        tell: Callable[[dict[str, str]], None] = lambda tried: None,
        *,
        again: bool = False,
        remember: bool = False,
    ) -> None:
        self.target = target
        self.contains = contains
        self.budget = budget
        self.until = until
        self.tell = tell
        """Told before each try what was tried so far, and what is tried next: it may not end."""
        self.again = again
        """Whether the example was run before, by another process: it counts whatever it raises."""
        self.remember = remember
        """Whether all tensors will have to be as they were made again, not the state of modules alone."""

    def find(self, each: Callable[[], Iterable[Example]]) -> tuple[Fit, list[Run]]:
        """The fit, and its runs on the arguments as given; raises `Unusable`."""
        while True:
            try:
                return self._on_device(each())
            except torch.OutOfMemoryError as error:
                if not self.budget.reduce():
                    fails = f"{self.target.name} does not fit into memory"
                    raise Unusable(f"{fails}: {describe(error)}", fails) from error
            except Unusable as error:
                if time.monotonic() > self.until or not self.budget.next_device(f"failed ({error})"):
                    raise

    def _on_device(self, examples: Iterable[Example]) -> tuple[Fit, list[Run]]:
        tried: list[Tried] = []
        late = False
        for example in examples:
            lines_run = 0
            self.tell(on_the_way(tried, example.text))
            try:
                fit = Fit(self.target, example, self.budget, self.contains, remember=self.remember)
                runs = [fit.eager(Run(call, GIVEN)) for call in range(fit.calls)]
            except torch.OutOfMemoryError:
                raise
            except Exception as error:
                raised: BaseException = error
            else:
                if self.again or any(self._fits(example, run) for run in runs):
                    return fit, runs
                raised = next(r.raised for r in runs if r.raised is not None)
                lines_run = max(sum(map(len, run.lines.values())) for run in runs)
            on = "" if isinstance(raised, Unusable) else f"{_shortened(example.text)}: "
            tried.append(Tried(on + describe(raised, self.contains), on + bare(raised, self.contains), lines_run))
            if example.declared:
                fails = f"{self.target.name} does not run on its declared inputs ({example.origin})"
                raise Unusable(f"{fails}: {tried[-1].said}", f"{fails}: {tried[-1].bare}")
            example.failed(raised)
            if late := time.monotonic() > self.until:
                break
        tried.sort(key=lambda each: -each.lines)
        said, withheld = [each.said for each in tried], [each.bare for each in tried]
        raise Unusable(nothing_fits(self.target, said, late=late), nothing_fits(self.target, withheld, late=late))

    def _fits(self, example: Example, run: Run) -> bool:
        return run.raised is None or (example.declared and self.raised_on_purpose(run.raised))

    def raised_on_purpose(self, error: BaseException) -> bool:
        """Whether a `raise` or `assert` of the user's own code raised it: a path through the code, not inputs that
        do not fit.
        """
        if isinstance(error, bdb.BdbQuit):  # a debugger that found no input
            return True
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        if trace is None:
            return False
        path = trace.tb_frame.f_code.co_filename
        return self.contains(path) and positions.raises(path, trace.tb_lineno)


def _shortened(text: str) -> str:
    return text if len(text) <= 160 else f"{text[:80]}...{text[-77:]}"


def on_the_way(tried: list[Tried], text: str) -> dict[str, str]:
    """What was tried so far, for those who wait in vain; without the words of the checked code, too."""
    last = f"{_shortened(text)} did not end"
    if not tried:
        return {"said": last, "bare": last}
    best = max(tried, key=lambda each: each.lines)
    count = f"what got farthest of {len(tried)} tries before it" if len(tried) > 1 else "the try before it"
    return {"said": f"{last}; {count}: {best.said}", "bare": f"{last}; {count}: {best.bare}"}


def nothing_fits(target: Target, tried: list[str], *, late: bool = False) -> str:
    """One line: what stands first of what was tried, for it ran most of the code, and what to write."""
    name = target.name
    head, dot, method = name.partition(".")
    call = f"{head}(...){dot}{method}(torch.randn(...))" if target.kind == "class" else f"{name}(torch.randn(...))"
    count = f"what got farthest of {len(tried)} tries" if len(tried) > 1 else "the one try"
    what = f"{count}: {tried[0]}" if tried else "nothing to try"
    more = "; the time was over, --timeout gives more" if late else ""
    return f"no inputs found for {name} ({what}){more}; write them above it: # graphmend: example {call}"

"""One target: the first inputs that fit, an eager run that shows which lines run, variants of the inputs, and the
compiled runs.
"""

from __future__ import annotations

import bdb
import contextlib
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch._dynamo

from . import compare, devices, lines, positions, timing, variants
from .break_log import BreakLog
from .discover import Target
from .errors import Unusable, describe
from .examples import Arguments, Example
from .recorder import Recorder, once_each
from .variants import GIVEN, Variant

VARIANTS_KEPT = 6
VARIANTS_SECONDS = 4.0
SMALLEST_PART = 16
COMPARED = 2
"""Variants that are always kept for a comparison: lines do not show the sides of a conditional expression."""


class Fit:
    """An example that the target accepts: the instance, what makes its arguments, and where it runs."""

    def __init__(self, example: Example, instance: Any, device: str, calls: int) -> None:
        self.example = example
        self.instance = instance
        self.device = device
        self.calls = calls
        self.state = compare.state(instance)
        self.parts = 1
        """Batches are cut to one of so many parts."""


class Run:
    """One call: which arguments of the example, which variant of them, and what came of it."""

    def __init__(self, call: int, variant: Variant) -> None:
        self.call = call
        self.variant = variant
        self.raised: BaseException | None = None
        self.value: Any = None
        self.arcs: dict[str, set[tuple[int, int]]] = {}


class Session:
    """Checks one target.

    `current` is the recorder that counts graphs of the user's own `torch.compile` calls meanwhile.
    """

    current: Recorder | None = None

    def __init__(
        self,
        target: Target,
        project: lines.Project,
        possible_devices: list[str],
        until: float,
        progress: Callable[[str], None],
        job: dict[str, Any],
        compiler: Any,
    ) -> None:
        self.target = target
        self.project = project
        self.possible_devices = possible_devices
        self.until = until
        self.progress = progress
        self.job = job
        self.compiler = compiler
        self.answer: dict[str, Any] = {
            "name": target.name,
            "status": "checked",
            "problem": None,
            "line": target.line,
            "notes": [],
        }

    def run(self, each: Callable[[], Iterable[Example]]) -> dict[str, Any]:
        self.progress(f"finding inputs for {self.target.name}")
        try:
            fit, runs = self._fit(each)
        except Unusable as error:
            self.answer.update(status="no-inputs", problem=str(error))
            return self.answer
        self.answer.update(
            origin=fit.example.origin,
            inputs=fit.example.text,
            arguments=[shapes(self._arguments(fit, run)) for run in runs],
            device=devices.title(fit.device),
        )
        if fit.parts > 1:
            self.answer["notes"].append(f"batches are cut to 1/{fit.parts}: out of memory on {fit.device}")
        runs += self._other_sides(fit, runs)
        self._tell_runs(runs)
        self.progress(f"compiling {self.target.name}")
        call = self._compiled(fit, runs)
        if self.job.get("keep") or self.job.get("compare"):
            self.progress(f"running {self.target.name} for comparison")
            self._side_by_side(fit, runs, call)
        if self.job.get("bench"):
            self.progress(f"timing {self.target.name}")
            self._timed(fit, runs[0])
        return self.answer

    # inputs

    def _fit(self, each: Callable[[], Iterable[Example]]) -> tuple[Fit, list[Run]]:
        """The first example whose eager run does not fail, with those runs."""
        tried: list[str] = []
        for device in self.possible_devices:
            for example in each():
                try:
                    variants.seed(0)
                    instance = devices.move(example.build(), device)
                    variants.seed(0)
                    fit = Fit(example, instance, device, len(example.inputs()))
                except Exception as error:
                    tried.append(f"{example.text}: {describe(error, self.project.contains)}")
                    example.failed(error)
                else:
                    runs = self._given(fit)
                    if self.job.get("compare") or any(self._fits(example, run) for run in runs):
                        if device != self.possible_devices[0]:
                            self.answer["notes"].append(f"on {device}: {self.possible_devices[0]} failed")
                        return fit, runs
                    raised = next(r.raised for r in runs if r.raised is not None)
                    tried.append(f"{example.text} raises {describe(raised, self.project.contains)}")
                    example.failed(raised)
                if example.declared and device == self.possible_devices[-1]:
                    raise Unusable(
                        f"{self.target.name} does not run on its declared inputs ({example.origin}): {tried[-1]}"
                    )
                if time.monotonic() > self.until:
                    break
        raise Unusable(self._nothing_fits(tried))

    def _given(self, fit: Fit) -> list[Run]:
        """The eager runs of an example; with smaller batches where the device's memory does not do."""
        while True:
            runs = [self._eager(fit, Run(call, GIVEN)) for call in range(fit.calls)]
            short = any(isinstance(run.raised, torch.OutOfMemoryError) for run in runs)
            if not short or fit.parts == SMALLEST_PART:
                return runs
            fit.parts *= 2
            if fit.device != "cpu":
                torch.cuda.empty_cache()

    def _fits(self, example: Example, run: Run) -> bool:
        return run.raised is None or (example.declared and self._raised_on_purpose(run.raised))

    def _nothing_fits(self, tried: list[str]) -> str:
        name = self.target.name
        head, dot, method = name.partition(".")
        call = (
            f"{head}(...){dot}{method}(torch.randn(...))"
            if self.target.kind == "class"
            else f"{name}(torch.randn(...))"
        )
        what = f"the last of {len(tried)} tries: {tried[-1]}" if tried else "nothing to try"
        return f"no inputs found for {name} ({what}); write them above it: # graphmend: example {call}"

    def _arguments(self, fit: Fit, run: Run) -> Arguments:
        def make() -> Arguments:
            return fit.example.inputs()[run.call]

        made = variants.arguments(make, run.variant)
        if fit.parts > 1:
            made = variants.part_of_batch(made, fit.parts)
        return devices.move(made, fit.device)  # type: ignore[no-any-return]

    # runs

    def _callable(self, fit: Fit) -> Any:
        return fit.instance if self.target.method is None else getattr(fit.instance, self.target.method)

    def _eager(self, fit: Fit, run: Run) -> Run:
        tracer = lines.LineTracer(self.project.contains)
        compare.restore(fit.instance, fit.state)
        try:
            arguments = self._arguments(fit, run)
            call = self._callable(fit)
            variants.seed(0)
            with variants.weights(fit.instance, run.variant), torch.compiler.set_stance("force_eager"), tracer:
                run.value = call(*arguments[0], **arguments[1])
        except Exception as error:
            run.raised = error
        run.arcs = tracer.arcs
        return run

    def _raised_on_purpose(self, error: BaseException) -> bool:
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
        return self.project.contains(path) and positions.raises(path, trace.tb_lineno)

    def _other_sides(self, fit: Fit, runs: list[Run]) -> list[Run]:
        """Variants of the first arguments that take a way which no run took yet."""
        seen: dict[str, set[tuple[int, int]]] = {}
        for run in runs:
            lines.add(seen, run.arcs)
        kept: list[Run] = []
        always = COMPARED if self.job.get("keep") else 0
        until = min(self.until, time.monotonic() + VARIANTS_SECONDS)
        weighty = isinstance(fit.instance, torch.nn.Module) and any(True for _ in fit.instance.parameters())
        for variant in variants.worth_trying(self._arguments(fit, runs[0]), weighty):
            if len(kept) == VARIANTS_KEPT or time.monotonic() > until:
                break
            run = self._eager(fit, Run(0, variant))
            if run.raised is not None and not self._raised_on_purpose(run.raised):
                continue
            before = lines.count(seen)
            lines.add(seen, run.arcs)
            if lines.count(seen) > before or len(kept) < always:
                kept.append(run)
        return kept

    def _tell_runs(self, runs: list[Run]) -> None:
        executed: dict[str, set[int]] = {}
        for run in runs:
            lines.add(executed, {path: {b for _, b in arcs} for path, arcs in run.arcs.items()})
        self.answer["executed"] = {path: lines.ranges(found) for path, found in executed.items()}
        self.answer["runs"] = [
            {
                "inputs": variants.label(run.variant) if run.variant != GIVEN else f"given {run.call + 1}",
                "raised": None if run.raised is None else describe(run.raised, self.project.contains),
            }
            for run in runs
        ]

    # compiled

    def _compiled(self, fit: Fit, runs: list[Run]) -> Any:
        """Compiles and makes every run; returns the compiled callable."""
        torch._dynamo.reset()
        recorder = Recorder(self.project.contains)
        graphs: list[int] = []
        Session.current = recorder
        log = BreakLog()
        try:
            with recorder, log if recorder.lacks_breaks else contextlib.nullcontext():
                call = self._callable(fit)
                if not is_compiled(call):
                    call = torch.compile(call, backend=recorder.backend)
                for number, run in enumerate(runs):
                    first_event = len(recorder.events)
                    self._one_compiled(fit, run, call)
                    for event in recorder.events[first_event:]:
                        event["run"] = number
                    if number == 0:
                        graphs = list(recorder.graphs)  # later runs may compile again
        finally:
            Session.current = None
        traced = {path: found for path, found in recorder.traced.items() if self.project.contains(path)}
        self.answer.update(
            graphs=len(graphs),
            ops=graphs,
            breaks=once_each(recorder.events),
            traced={path: lines.ranges(found) for path, found in traced.items()},
            recompiles=recorder.recompiles,
        )
        if recorder.lacks_breaks:
            self.answer["log"] = log.text
        if recorder.missing:
            self.answer["notes"].append("torch {} lacks {}".format(torch.__version__, ", ".join(recorder.missing)))
        return call

    def _side_by_side(self, fit: Fit, runs: list[Run], compiled: Any) -> None:
        """Keeps what the runs give, or makes the runs that were kept and compares."""
        old = compare.kept(self.job["compare"], self.target.name) if self.job.get("compare") else None
        if self.job.get("compare") and old is None:
            return
        if old is not None:
            runs = [Run(r["call"], (r["variant"][0], r["variant"][1])) for r in old["runs"]]
        state = fit.state if old is None else devices.move(old["state"], fit.device)
        maker = compare.Maker(fit.instance, state, lambda run: self._arguments(fit, run))
        new = [
            {
                "eager": maker.run(self._callable(fit), run, eager=True),
                "compiled": maker.run(compiled, run, eager=False),
                **as_data(run),
            }
            for run in runs
        ]
        if old is None:
            compare.keep(
                self.job["keep"],
                self.target.name,
                {"runs": new, "state": state, "text": fit.example.text, "origin": fit.example.origin},
            )
        else:
            self.answer["comparison"] = compare.differences(old["runs"], new, [variants.label(r.variant) for r in runs])

    def _timed(self, fit: Fit, run: Run) -> None:
        plain = self._callable(fit)
        plain = getattr(plain, "_orig_mod", None) or getattr(plain, "_torchdynamo_orig_callable", plain)
        arguments = self._arguments(fit, run)

        def call(function: Any) -> Any:
            return function(*arguments[0], **arguments[1])

        kept, torch.compile = torch.compile, self.compiler  # times are of a real backend, not of the counting one
        try:
            self.answer["times"] = timing.measure(plain, call, fit.device)
        except Exception as error:
            self.answer["notes"].append(f"not timed: {describe(error, self.project.contains)}")
        finally:
            torch.compile = kept

    def _one_compiled(self, fit: Fit, run: Run, call: Any) -> None:
        compare.restore(fit.instance, fit.state)
        try:
            arguments = self._arguments(fit, run)
            variants.seed(0)
            with variants.weights(fit.instance, run.variant):
                call(*arguments[0], **arguments[1])
        except Exception as error:
            if run.raised is None:
                self.answer["notes"].append(f"only when compiled: {describe(error, self.project.contains)}")


def as_data(run: Run) -> dict[str, Any]:
    return {"call": run.call, "variant": list(run.variant)}


def is_compiled(call: Any) -> bool:
    return hasattr(call, "_torchdynamo_orig_callable") or hasattr(call, "_orig_mod")


def shapes(arguments: Arguments) -> str:
    """`float32[2, 8], mask=int64[2, 9]`"""
    positional = [shape(value) for value in arguments[0]]
    return ", ".join(positional + [f"{name}={shape(value)}" for name, value in arguments[1].items()])


def shape(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return "{}{}".format(str(value.dtype).replace("torch.", ""), list(value.shape))
    if isinstance(value, (list, tuple)):
        inner = ", ".join(shape(v) for v in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    text = repr(value)
    return text if len(text) <= 40 else type(value).__name__

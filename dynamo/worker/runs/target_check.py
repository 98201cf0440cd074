"""One target: the inputs that fit, variants of them that take other ways, and the compiled runs."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import torch
import torch._dynamo

from .. import versions
from ..comparison import compare, output
from ..discover import Target
from ..errors import Unusable, bare, describe
from ..inputs.examples import Arguments, Example
from ..inputs.variation import thresholds, variants
from ..inputs.variation.variants import GIVEN
from ..recording import lines
from ..recording.recorder import Recorder, once_each
from . import devices, stream, timing, varied
from .fitting import Finder, Fit, MemoryBudget, Run

VARIANTS_KEPT = 6
VARIANTS_SECONDS = 4.0
QUICK_SECONDS = 0.1
"""What a run takes at most that is made in half precision on a processor, too: many have no instructions for it, and
take hundreds of times as long.
"""
COMPARED = 2
"""Variants that are always kept for a comparison: `torch.where` hides sides that a branch shows."""
EAGER_SECONDS, SEARCH_SECONDS = 2.0, 10.0
"""Processor time for the variants that a comparison makes besides, in eager mode only: where a rule proved the
rewrite, and where nobody did."""


class TargetCheck:
    """Checks one target.

    `current` is the recorder that counts graphs of the user's own `torch.compile` calls meanwhile; `counting` what
    counts them in a stream of batches.
    """

    current: Recorder | None = None
    counting: stream.Counting | None = None

    def __init__(
        self,
        target: Target,
        project: lines.Project,
        possible_devices: list[str],
        until: float,
        say: Callable[[dict[str, Any]], None],
        job: dict[str, Any],
        compiler: Any,
        module: ModuleType,
        beginning: compare.Beginning,
    ) -> None:
        self.target = target
        self.project = project
        self.possible_devices = possible_devices
        self.until = until
        self.say = say
        self.job = job
        self.compiler = compiler
        self.module = module
        self.beginning = beginning
        self._began = time.monotonic()
        self.answer: dict[str, Any] = {
            "name": target.name,
            "status": "checked",
            "problem": None,
            "line": target.line,
            "notes": [],
        }

    def progress(self, stage: str) -> None:
        self.say({"stage": stage})

    def run(self, each: Callable[[], Iterable[Example]]) -> dict[str, Any]:
        """The whole check; with less of everything again where memory is short in the middle of it."""
        self._began = time.monotonic()
        old = compare.kept(self.job["compare"], self.target.name) if self.job.get("compare") else None
        budget = MemoryBudget(self.possible_devices) if old is None else MemoryBudget([old["device"]], old["parts"])
        compared = bool(self.job.get("keep") or self.job.get("compare"))
        finder = Finder(
            self.target,
            self.project.contains,
            budget,
            self.until,
            lambda tried: self.say({"tried": tried}),
            again=old is not None,
            remember=compared,
        )
        while True:
            self.progress(f"finding inputs for {self.target.name}")
            try:
                fit, runs = finder.find(each)
                return self._check(finder, fit, runs)
            except Unusable as error:
                self.answer.update(status="no-inputs", problem=str(error), bare=error.bare)
                return self.answer
            except torch.OutOfMemoryError as error:
                if not budget.reduce():
                    name = self.target.name
                    self.answer.update(
                        status="failed", problem=f"{name}: {describe(error)}", bare=f"{name}: {bare(error)}"
                    )
                    return self.answer

    def _check(self, finder: Finder, fit: Fit, runs: list[Run]) -> dict[str, Any]:
        self.answer.update(
            origin=fit.example.origin,
            inputs=fit.example.text,
            arguments=[shapes(fit.arguments(run)) for run in runs],
            device=devices.title(fit.device),
            notes=list(finder.budget.said()),
        )
        self.progress(f"running {self.target.name} on other inputs")
        runs = runs + self._other_sides(finder, fit, runs)
        self._tell_runs(runs)
        self.progress(f"compiling {self.target.name}")
        call = self._compiled(fit, runs)
        if fit.example.origin == "synthesised" and not (self.job.get("keep") or self.job.get("compare")):
            self.progress(f"varying the inputs of {self.target.name}")
            now = time.monotonic()
            until = min(self.until, now + max(varied.LEAST_SECONDS, varied.SHARE * (now - self._began)))
            self.answer["varied"] = varied.vary(fit, call, until)
        if self.job.get("keep") or self.job.get("compare"):
            self.progress(f"running {self.target.name} for comparison")
            self._side_by_side(finder, fit, runs, call)
        if self.job.get("batches"):
            self.progress(f"running {self.target.name} on a stream of batches")
            self.answer["batches"] = self._stream(fit)
        if self.job.get("bench"):
            self.progress(f"timing {self.target.name}")
            self._timed(fit, runs[0])
        return self.answer

    # runs

    def _other_sides(self, finder: Finder, fit: Fit, runs: list[Run]) -> list[Run]:
        """Variants of the first arguments that take a way which no run took yet."""
        seen = set().union(*(run.steps for run in runs))
        kept: list[Run] = []
        always = COMPARED if self.job.get("keep") else 0
        until, is_slow = time.process_time() + VARIANTS_SECONDS, fit.device == "cpu" and runs[0].seconds > QUICK_SECONDS
        for variant in variants.worth_trying(fit.arguments(runs[0]), fit.instance):
            if len(kept) == VARIANTS_KEPT or time.process_time() > until or time.monotonic() > self.until:
                break
            if is_slow and variant[0] == "half":
                continue
            run = fit.eager(Run(0, variant))
            if run.raised is not None and not finder.raised_on_purpose(run.raised):
                continue
            if not run.steps <= seen or len(kept) < always:
                kept.append(run)
                seen |= run.steps
        return kept

    def _tell_runs(self, runs: list[Run]) -> None:
        executed: dict[str, set[int]] = {}
        for run in runs:
            for path, found in run.lines.items():
                executed.setdefault(path, set()).update(found)
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
        """Compiles and makes every run; returns the compiled callable.

        The first begins as the first eager run did: what a first call builds, and its breaks, are not there again.
        """
        torch._dynamo.reset()
        self.beginning.restore()
        fit.memento.restore()
        output.forget_cached()
        path = getattr(self.module, "__file__", None)
        home = (path, self.target.line or 1) if path is not None else None
        recorder = Recorder(self.project.contains, home)
        graphs: list[int] = []
        TargetCheck.current = recorder
        try:
            with recorder:
                call = fit.callable
                if not is_compiled(call):
                    call = torch.compile(call, backend=recorder.backend)
                for number, run in enumerate(runs):
                    first_event, recompiles = len(recorder.events), len(recorder.recompiles)
                    self._one_compiled(fit, run, call)
                    if run.variant[0] in ("eval", "half"):  # that another mode or type is another graph is no news
                        del recorder.recompiles[recompiles:]
                    made = recorder.events[first_event:]
                    if run.raised is not None and any(other.raised is None for other in runs):
                        made = [event for event in made if not _only_raises(event, run.raised)]
                        recorder.events[first_event:] = made
                    for event in made:
                        event["run"] = number
                    if number == 0:
                        graphs = list(recorder.graphs)  # later runs may compile again
        finally:
            TargetCheck.current = None
        traced = {path: found for path, found in recorder.traced.items() if self.project.contains(path)}
        self.answer.update(
            graphs=len(graphs),
            ops=graphs,
            cuts=recorder.cuts[: len(graphs)],
            breaks=once_each(recorder.events),
            traced={path: lines.ranges(found) for path, found in traced.items()},
            recompiles=recorder.recompiles,
        )
        if recorder.blind is not None:
            self.answer.update(status="failed", problem=versions.blind(torch.__version__, recorder.blind))
        return call

    def _side_by_side(self, finder: Finder, fit: Fit, runs: list[Run], compiled: Any) -> None:
        """Keeps what the runs give, or makes the runs that were kept and compares."""
        old = compare.kept(self.job["compare"], self.target.name) if self.job.get("compare") else None
        if self.job.get("compare") and old is None:
            return
        state = fit.state if old is None else devices.move(old["state"], fit.device)
        maker = compare.Maker(fit.instance, state, fit.arguments, self.module, fit.memento, self.beginning)
        initial = maker.initial()
        if old is None:
            made = [self._made(maker, fit, run, compiled) for run in runs]
            made += self._eager_only(finder, maker, fit, runs)
        else:
            again = [(Run(r["call"], (r["variant"][0], r["variant"][1])), r) for r in old["runs"]]
            made = [self._made(maker, fit, run, compiled if "compiled" in r["outcomes"] else None) for run, r in again]
        kept = {"runs": made, "initial": initial}
        if old is None:
            example = fit.example
            how = {"text": example.text, "origin": example.origin, "of_owner": example.of_owner}
            more = {**how, "device": fit.device, "parts": fit.parts, "state": state}
            compare.keep(self.job["keep"], self.target.name, {**kept, **more})
        else:
            labels = [variants.label(run.variant) for run, _ in again]
            self.answer["comparison"] = compare.differences(old, kept, labels)

    def _made(self, maker: compare.Maker, fit: Fit, run: Run, compiled: Any) -> dict[str, Any]:
        outcomes = maker.run(fit.callable, compiled, run)
        made: dict[str, Any] = {"outcomes": outcomes, "call": run.call, "variant": list(run.variant)}
        if self.job.get("keep"):
            made["noise"] = maker.noise(fit.callable, run, outcomes)
        return made

    def _eager_only(self, finder: Finder, maker: compare.Maker, fit: Fit, runs: list[Run]) -> list[dict[str, Any]]:
        """Runs on inputs that change what is computed and not which way is taken, as far as the original takes them."""
        made = []
        known, unproven = [run.variant for run in runs], bool(self.job.get("unproven"))
        until = time.process_time() + (SEARCH_SECONDS if unproven else EAGER_SECONDS)
        given = fit.arguments(runs[0])
        telling = variants.telling(given, fit.device, known, unproven)
        if unproven:
            telling += [("equal", number) for number in thresholds.numbers(fit.callable, given)]
        for variant in telling:
            if time.process_time() > until or time.monotonic() > self.until:
                break
            run = fit.eager(Run(0, variant))
            if run.raised is None or finder.raised_on_purpose(run.raised):
                made.append(self._made(maker, fit, run, None))
        return made

    def _stream(self, fit: Fit) -> list[dict[str, Any]]:
        counting = stream.Counting()
        call = fit.callable
        TargetCheck.counting = counting
        try:
            if not is_compiled(call):
                call = torch.compile(call, backend=counting)
            return stream.measure(fit, call, counting, self.job["batches"], self.job.get("lengths", False))
        finally:
            TargetCheck.counting = None

    def _timed(self, fit: Fit, run: Run) -> None:
        plain = fit.callable
        plain = getattr(plain, "_orig_mod", None) or getattr(plain, "_torchdynamo_orig_callable", plain)
        arguments = fit.arguments(run)

        def call(function: Any) -> Any:
            return function(*arguments[0], **arguments[1])

        kept, torch.compile = torch.compile, self.compiler  # times are of a real backend, not of the counting one
        try:
            self.answer["times"] = timing.measure(plain, call, fit.device)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            self.answer["notes"].append(f"not timed: {describe(error, self.project.contains)}")
        finally:
            torch.compile = kept

    def _one_compiled(self, fit: Fit, run: Run, call: Any) -> None:
        compare.restore(fit.instance, fit.state)
        try:
            arguments = fit.arguments(run)
            variants.seed(0)
            with variants.applied(fit.instance, run.variant):
                call(*arguments[0], **arguments[1])
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            if run.raised is None:
                self.answer["notes"].append(f"only when compiled: {describe(error, self.project.contains)}")


def _only_raises(event: dict[str, Any], error: BaseException) -> bool:
    """Does TorchDynamo tell of nothing but the exception that a run raises without it, too?"""
    places = {(frame.f_code.co_filename, number) for frame, number in traceback.walk_tb(error.__traceback__)}
    return event["gb_type"].startswith("Observed exception") and (event["file"], event["span"][0]) in places


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

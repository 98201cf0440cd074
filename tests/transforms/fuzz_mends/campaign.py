"""Many programs: generated, mended and judged in a few processes, and what came of all of them."""

from __future__ import annotations

import gc
import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from fuzz_mends.program import Program, generate
from fuzz_mends.shrink import shrunk
from fuzz_mends.verdict import Verdict, Wrong, judged

_CHUNK = 10


@dataclass(frozen=True)
class Plan:
    """What to look at."""

    programs: int
    seed: int = 0
    first: int = 0
    workers: int = 2
    compile_every: int = 10
    """Each so-and-so-many-th program is judged compiled, too; 0 for none."""
    offers: int = 1
    """Single mends that are tried for each program, besides what `--fix` writes."""
    small: int = 3
    """Wrong programs of one kind that are made small."""
    at_most: int = 60
    """Wrong programs that are made small altogether."""


@dataclass
class Summary:
    """What came of a plan."""

    programs: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    """Programs that have mends, by mode."""
    mends: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Mends by mode and rewrite."""
    differing: Counter[str] = field(default_factory=Counter)
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How unsafe mends differ, by rewrite, where they are of one only."""
    compiled: int = 0
    wrong: list[Wrong] = field(default_factory=list)
    small: list[Wrong] = field(default_factory=list)
    seconds: float = 0.0
    latest: Verdict = field(default_factory=lambda: Verdict("unmended"))

    def add(self, verdict: Verdict) -> None:
        self.latest = verdict
        self.programs += 1
        self.statuses[verdict.status] += 1
        for mode, rewrites in verdict.mends.items():
            kind = mode.partition(" ")[0]
            self.changed[kind] += 1
            for rewrite in rewrites:
                self.mends[kind, rewrite] += 1
        for one in verdict.differing:
            self.differing[one.mode.partition(" ")[0]] += 1
            if len({*one.rewrites}) == 1:
                self.kinds.update((one.rewrites[0], what.partition(" ")[0]) for what in one.differences)
        self.compiled += verdict.compiled
        self.wrong += verdict.wrong

    def made(self, rewrite: str) -> int:
        return sum(count for (_, name), count in self.mends.items() if name == rewrite)


Told = Callable[[Summary], object]


def carried_out(plan: Plan, progress: Told | None = None, found: Told | None = None) -> Summary:
    """The summary of a plan. `progress` is called with it now and then, `found` before the wrong ones are made small,
    which takes a while where they are many.
    """
    summary, begun = Summary(), time.monotonic()
    context = multiprocessing.get_context("spawn")
    with context.Pool(plan.workers, warm, (plan.compile_every > 0,)) as pool:
        work = [(plan, number) for number in range(plan.first, plan.first + plan.programs)]
        for verdict in pool.imap_unordered(_one, work, _CHUNK):
            summary.add(verdict)
            summary.seconds = time.monotonic() - begun
            if progress is not None:
                progress(summary)
        summary.wrong.sort(key=lambda w: (len(w.program.text), w.program.seed))
        if found is not None:
            found(summary)
        summary.small = _distinct(pool.imap_unordered(shrunk, _chosen(summary.wrong, plan)))
    return summary


def _distinct(small: Iterable[Wrong]) -> list[Wrong]:
    """The smallest of each kind: what was large and of several kinds often becomes the same."""
    found: dict[tuple[str, ...], Wrong] = {}
    for one in sorted(small, key=lambda w: (len(w.program.text), w.program.seed)):
        found.setdefault((one.mode.partition(" ")[0], *one.signature[1:]), one)
    return [found[key] for key in sorted(found)]


def _chosen(wrong: Iterable[Wrong], plan: Plan) -> list[Wrong]:
    """Some of each kind, short ones first; one of each before a second one of any."""
    seen: Counter[tuple[str, ...]] = Counter()
    ranked: list[tuple[int, Wrong]] = []
    for one in wrong:
        seen[one.signature] += 1
        ranked.append((seen[one.signature], one))
    ranked.sort(key=lambda entry: entry[0])
    return [one for rank, one in ranked if rank <= plan.small][: plan.at_most]


def _one(work: tuple[Plan, int]) -> Verdict:
    plan, number = work
    program = generate(f"{plan.seed}:{number}")
    compiled = plan.compile_every > 0 and number % plan.compile_every == 0
    return safely_judged(program, compiled, plan.offers)


def judged_one_by_one(programs: Iterable[Program], offers: int, compile_every: int = 0) -> list[Verdict]:
    """The verdicts on programs, in this process; each `compile_every`th is compiled as well."""
    warm(compiling=True)  # torch's loops are compiled in plain Python, too (2.13)
    return [
        safely_judged(program, compiled=compile_every > 0 and number % compile_every == 0, offers=offers)
        for number, program in enumerate(programs)
    ]


def safely_judged(program: Program, compiled: bool, offers: int) -> Verdict:
    """A failure of GraphMend itself is a wrong one, too."""
    try:
        return judged(program, compiled=compiled, offers=offers)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        return Verdict("judged", wrong=[Wrong(program, "crash", "", [], {what[:200]: 0}, [])])


def warm(compiling: bool) -> None:
    """Loads once what every fork needs. Nothing here starts threads or asks for gradients: forks could not."""
    import numpy.random  # which `np.random` would load in each fork, as some operators do with TorchDynamo
    import torch._dynamo

    import graphmend.runtime

    assert graphmend.runtime
    assert numpy.random
    torch.set_num_threads(1)
    if compiling:
        from graphmend.dynamo.worker.runs.warmup import leave_guards_untimed

        leave_guards_untimed()
        torch._dynamo.config.run_gc_after_compile = False  # it would take half of the rest

        def broken(x: torch.Tensor) -> torch.Tensor:
            if x.sum() > 0:
                torch._dynamo.graph_break()
            return x + 1

        torch.compile(broken, backend="eager")(torch.ones(2))
        torch.compile(torch.nn.Linear(2, 2), backend="eager")(torch.ones(2))
        torch._dynamo.reset()
    gc.collect()
    gc.freeze()  # a fork whose collector touches everything copies all of its pages

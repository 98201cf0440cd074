"""One program from its seed to its verdict: mended in every way that is offered, run, and compared."""

from __future__ import annotations

import ast
import random
from dataclasses import dataclass, field
from typing import Any

from fuzz_mends import judge, mending
from fuzz_mends.differences import unnamed
from fuzz_mends.forks import forked
from fuzz_mends.mending import Text
from fuzz_mends.observe import observed, observed_each, observed_nudged
from fuzz_mends.program import Program

#: seconds that TorchDynamo may take for one program
_COMPILING = 90


@dataclass
class Wrong:
    """A mended text that answers differently in a way that nothing named."""

    program: Program
    mode: str
    """`safe` and `unsafe`: as `--fix` writes it. `offered`: one mend of those in an editor. `+compiled`: compiled."""
    mended: str
    rewrites: list[str]
    differences: dict[str, int]
    """Each with the number of the first input that shows it."""
    said: list[str]
    """What the mends say of themselves."""

    @property
    def signature(self) -> tuple[str, ...]:
        return (self.mode, *sorted(set(self.rewrites)), *sorted(self.differences))


@dataclass
class Verdict:
    """What came of one program."""

    status: str
    """`unmended`, `unfit` (the original fails for every input) or `judged`."""
    mends: dict[str, list[str]] = field(default_factory=dict)
    """By mode, the rewrites that were made."""
    wrong: list[Wrong] = field(default_factory=list)
    differing: list[Wrong] = field(default_factory=list)
    """What would be wrong if unsafe mends did not name it."""
    compiled: int = 0
    """Mended texts that were judged compiled, too."""


def judged(program: Program, *, compiled: bool = False, offers: int = 2) -> Verdict:
    """`offers` is how many single mends are tried besides those that `--fix` takes."""
    found: dict[str, Text] = {}
    for mode, text in _texts(program, offers):
        if text.text != program.text and all(text.text != other.text for other in found.values()):
            found[mode] = text
    if not found:
        return Verdict("unmended")
    want, *got = run_all(program, [program.text, *(text.text for text in found.values())])
    if want is None or all("raised" in one for one in want):
        return Verdict("unfit")
    verdict = Verdict("judged", {mode: text.rewrites for mode, text in found.items()})
    for (mode, text), seen in zip(found.items(), got, strict=True):
        if seen is None or judge.differences(want, seen):
            _judge(verdict, program, mode, text)
    if compiled:
        _judge_compiled(verdict, program, found, want)
    return verdict


def _texts(program: Program, offers: int) -> list[tuple[str, Text]]:
    mends = mending.every(program.text)
    singles = random.Random(program.seed).sample(mends.offered, min(offers, len(mends.offered)))
    return [
        ("safe", mends.safe),
        ("unsafe", mends.unsafe),
        *((f"offered {i}", text) for i, text in enumerate(singles)),
    ]


def compared(program: Program, text: Text, mode: str) -> tuple[dict[str, int], bool]:
    """How a mended text differs from its program, and whether it may."""
    want = run(program)
    if want is None:
        return {}, True
    if mode.endswith("compiled"):
        got, control = run(program, text.text, compiled=True), run(program, compiled=True)
        if control is None:
            return {}, True
        found = {"failed": 0} if got is None else judge.new_differences(want, got, control)
        of_aot = {what for what, number in found.items() if _is_of_aot(what, want[number : number + 1])}
        if of_aot and (captured := run(program, text.text, compiled=True, backend="eager")) is not None:
            of_aot -= judge.new_differences(want, captured, control).keys()
            found = {what: number for what, number in found.items() if what not in of_aot}
    else:
        got = run(program, text.text)
        found = {"failed": 0} if got is None else judge.differences(want, got)
    return found, not found or not _counts(program, want, found, text)


def _is_of_aot(what: str, of: judge.Seen) -> bool:
    """May this be what AOTAutograd does to any graph as large, where it is not there without it? It leaves out a draw
    that nobody uses, gives an output that is an input, or shares its memory, memory of its own, and may change inputs
    that share their memory otherwise (torch 2.13).
    """
    return what == "rng" or what.endswith(".alias") or any(map(judge.given_shared_memory, of))


def _counts(program: Program, want: judge.Seen, found: dict[str, int], text: Text) -> bool:
    """Is such a difference wrong?"""
    if all(fix.applicability == "safe" for fix in text.fixes):
        return True
    of_shared = all(map(judge.given_shared_memory, (want[number] for number in found.values() if number < len(want))))
    left = unnamed(found, text.fixes, shared=of_shared)
    if left and not unnamed([what.replace(".data", ".rounding") for what in left], text.fixes):
        answer = forked(observed_nudged, program.text, program.inputs, kept_names(program.text))
        return not ("ok" in answer and judge.is_amplified(want, answer["ok"]))
    return bool(left)


def _judge(verdict: Verdict, program: Program, mode: str, text: Text) -> None:
    """Where they differed one after the other in one process, each has a process of its own."""
    want, again = run(program), run(program)
    if want is None or again is None or judge.differences(want, again):
        return
    got = run(program, text.text)
    found = {"failed": 0} if got is None else judge.differences(want, got)
    if found and _counts(program, want, found, text):
        verdict.wrong.append(_wrong(program, mode, text, found))
    elif found:
        verdict.differing.append(_wrong(program, mode, text, found))


def _judge_compiled(verdict: Verdict, program: Program, texts: dict[str, Text], want: judge.Seen) -> None:
    """The mended program, compiled, as far as the original gives compiled what it gives in plain Python."""
    done = {w.mode for w in (*verdict.differing, *verdict.wrong)}
    left = {mode: text for mode, text in texts.items() if mode not in done and not mode.startswith("offered")}
    if not left:
        return
    got = run_all(program, [text.text for text in left.values()], compiled=True)
    for (mode, text), seen in zip(left.items(), got, strict=True):
        verdict.compiled += 1
        if seen is not None and not judge.compiled_differences(want, seen):
            continue  # the original need not be compiled, which takes longest: it has the breaks
        found, fine = compared(program, text, f"{mode}+compiled")
        if not fine:
            verdict.wrong.append(_wrong(program, f"{mode}+compiled", text, found))
        elif found:
            verdict.differing.append(_wrong(program, f"{mode}+compiled", text, found))


def _wrong(program: Program, mode: str, text: Text, found: dict[str, int]) -> Wrong:
    said = [f"{fix.rewrite} ({fix.applicability}): {fix.reason}" for fix in text.fixes]
    return Wrong(program, mode, text.text, text.rewrites, found, said)


def run(
    program: Program, text: str | None = None, *, compiled: bool = False, backend: str = "aot_eager"
) -> judge.Seen | None:
    """What is seen of a program, or of a mended text of it, in a fork; None where it does not even load."""
    limit: dict[str, Any] = {"seconds": _COMPILING} if compiled else {}
    backend = backend if compiled else ""
    answer = forked(observed, text or program.text, program.inputs, kept_names(program.text), backend, **limit)
    seen: judge.Seen | None = answer.get("ok")
    return seen


def run_all(program: Program, texts: list[str], *, compiled: bool = False) -> list[judge.Seen | None]:
    """The same for several texts in one fork, which is faster."""
    limit: dict[str, Any] = {"seconds": _COMPILING} if compiled else {}
    backend = "aot_eager" if compiled else ""
    answer = forked(observed_each, texts, program.inputs, kept_names(program.text), backend, **limit)
    found = answer.get("ok", [])
    if not found:
        first = run(program, texts[0], compiled=compiled)
        if first is None and not compiled:  # a loop without an end, mostly, which the others have too
            return [None for _ in texts]
        return [first, *(run(program, text, compiled=compiled) for text in texts[1:])]
    return [None if isinstance(seen, str) else seen for seen in found]


def kept_names(text: str) -> tuple[str, ...]:
    """The names of a module's top level that may hold what lasts from call to call."""
    names: list[str] = []
    for statement in ast.parse(text.removeprefix("\ufeff")).body:
        if isinstance(statement, ast.Assign):
            names += [n.id for t in statement.targets for n in ast.walk(t) if isinstance(n, ast.Name)]
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            names.append(statement.target.id)
    return tuple(names)

"""Writes what a torch does with calls that torch 2.13 traces: `analysis/torch_facts/calls-X.Y.json`.

    python -m bench.versions.calls PY [PY ...]

Each PY is an interpreter with another torch. The expressions are made from the names that the facts hold. What breaks
is tried again, each call in a process of its own, and with this interpreter's torch: only what that traces is a
difference.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.versions import progress
from bench.versions.forms import FORMS
from graphmend.analysis import torch_facts
from graphmend.analysis.torch_facts import measured, measured_torch

Verdicts = dict[str, str | None]
"""What a call does, by its text: the type of its break, that it raises, or None where it is traced."""

PROBE = Path(__file__).parent / "probes" / "calls.py"
_NEEDED = (PROBE, PROBE.with_name("forks.py"))
FOLDER = Path(torch_facts.__file__).resolve().parent
WANTED = 2
"""How many calls of a name are tried; it counts as refused where all of them break."""
TOGETHER = 30
"""How many names are tried in one process at first."""
STEP = 150
"""How many names are one step of a run."""
MODULES = ("torch", "torch.Tensor", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special")
_OF_TENSORS = (
    "", "0", "y", "i", "1", "0.5", "(4, 4)", "0, 1", "y, y", "0, i", "0, i, y", "b, 0.5", "b", "0, 0, 2",
    "torch.float32", "lambda t: t",
)  # fmt: skip
_OF_FUNCTIONS = (
    "", "y", "y, y", "y, 0", "y, 1", "y, 0.5", "y, i", "b", "i", "[y, y]", "y, (4, 4)", "y, 0, 1", "y, 0, i", "y, y, y",
    "4", "4, 4", "0, 4", "(4, 4)", "0.0, 1.0", "torch.float32", "torch.float32, torch.float32", "b, y, y", "y, b, 0.5",
    "i, y", "'ij,jk->ik', y, y", "module", "True", "(4, 4), 1.0",
)  # fmt: skip
_OF_PYTHON = (
    "", "1", "'a'", "'a', 'abc'", "'a', 'b', 'abc'", "[1, 2]", "1, 2", "point", "Point", "KeyError",
    "lambda v: v, [1, 2]", "[1, 2], [3, 4]", "2.0", "module", "y", "int", "int, [1]", "{'a': 1}",
    "lambda v, w: v + w, [1, 2]", "'abc', 'b'", "[1, 2], 1", "point, 'a'", "'1+1'",
)  # fmt: skip
#: calls that no list of arguments makes
_WRITTEN = {"torch.Tensor.register_hook": ["(weight * 2).register_hook(lambda g: g * 2)"]}
_RECEIVERS = {
    "collections.Counter": "counter",
    "collections.deque": "deque",
    "random.Random": "generator",
    "re.Pattern": "pattern",
}


def expressions() -> dict[str, list[str]]:
    """Calls to try that the newest torch traces, by the qualified name of what is called."""
    known = torch_facts.load()
    names = {*measured.TRACED.split(), *measured_torch.TRACED.split(), "copy.deepcopy", "copy.copy"}
    names |= {f"{module}.{name}" for module in MODULES for name in known._functions[module] if name[:1].isalpha()}
    return {name: list(_calls(name)) for name in sorted(names) if known.refusal(name) is None}


def refused_expressions() -> dict[str, list[str]]:
    """Calls to try that the newest torch breaks at. Only functions of torch: Python's may do anything to a machine."""
    names = (name for _, _, names in measured_torch.BREAKS for name in names.split())
    return {name: list(_calls(name)) for name in sorted(names) if name.rpartition(".")[0] in MODULES}


def _calls(name: str) -> Iterator[str]:
    owner, _, last = name.rpartition(".")
    if name in _WRITTEN:
        yield from _WRITTEN[name]
    elif owner == "torch.Tensor":
        yield from (f"y.{last}({arguments})" for arguments in _OF_TENSORS)
    elif owner in _RECEIVERS:
        yield from (f"{_RECEIVERS[owner]}.{last}({arguments})" for arguments in _OF_PYTHON)
    elif name.startswith("torch."):
        yield from (f"{name}({arguments})" for arguments in _OF_FUNCTIONS)
    else:
        yield from (f"{name.removeprefix('builtins.')}({arguments})" for arguments in _OF_PYTHON)


def probe(python: str, names: Mapping[str, list[str]], wanted: int, together: int = 1) -> dict[str, Verdicts]:
    """What the probe answers in an interpreter, by name; names are left out where plain Python evaluates no call."""
    found: dict[str, Verdicts] = {}
    items = list(names.items())
    for start in range(0, len(items), STEP):
        request = {"names": dict(items[start : start + STEP]), "wanted": wanted, "together": together}
        found.update(progress.kept(python, request, _NEEDED, functools.partial(_run, python, request)))
    return found


def _run(python: str, request: Mapping[str, Any]) -> dict[str, Verdicts]:
    done = subprocess.run([python, str(PROBE)], input=json.dumps(request), capture_output=True, text=True, check=True)
    answer: dict[str, Verdicts] = json.loads(done.stdout.splitlines()[-1])["verdicts"]
    return answer


def facts(python: str) -> dict[str, Any]:
    """The data file: what this torch does otherwise than the newest one.

    `refused` has names all of whose calls break with this torch and with the newest none, and how; `traced` those the
    other way round; `forms` what is no call, with None where it is traced.
    """
    names = expressions()
    swept = probe(python, names, 1, TOGETHER)
    # what Python's functions keep from call to call, such as compiled patterns, hides what a program's first call does
    swept.update(probe(python, {name: names[name] for name in swept if not name.startswith("torch.")}, 1))
    suspects = {name: names[name] for name, verdicts in swept.items() if _breaks(verdicts)}
    again = probe(python, suspects, WANTED)
    broken = {name: verdicts for name, verdicts in again.items() if _breaks(verdicts)}
    newest = probe(sys.executable, {name: list(verdicts) for name, verdicts in broken.items()}, WANTED)
    version = progress.build(python).version
    ids = _ids(_minor(version))
    refused = {}
    for name, verdicts in broken.items():
        kind = next(iter(verdicts.values()))
        if name in newest and _traces(newest[name]) and kind in ids and "unsupported args" not in kind:
            refused[name] = [ids[kind], kind]  # what is told of arguments may be true of these alone
    return {
        "version": version.partition("+")[0],
        "measured": len(swept),
        "refused": refused,
        "traced": _traced_here(python),
        "forms": _forms(python, ids),
    }


def _traced_here(python: str) -> list[str]:
    """The functions of torch at which the newest one breaks, and this one not, with the same arguments.

    One that ends the compiled program with an error, as some did that break now, makes no graph break either.
    """
    verdicts = probe(python, refused_expressions(), WANTED, TOGETHER)
    traced = {name: list(found) for name, found in verdicts.items() if _breaks_nowhere(found)}
    newest = probe(sys.executable, traced, WANTED, TOGETHER)
    return sorted(name for name, found in newest.items() if _breaks(found))


def _forms(python: str, ids: Mapping[str, str]) -> dict[str, list[str] | None]:
    """Forms that this torch breaks at and the newest does not, with how, or the other way round."""
    here = probe(python, FORMS, len(max(FORMS.values(), key=len)))
    newest = probe(sys.executable, FORMS, len(max(FORMS.values(), key=len)))
    found: dict[str, list[str] | None] = {}
    for name, verdicts in here.items():
        kind = next(iter(verdicts.values()))
        if _breaks(verdicts) and _traces(newest[name]):
            found[name] = [ids.get(kind or "", ""), kind or ""]
        elif _breaks_nowhere(verdicts) and _breaks(newest[name]):
            found[name] = None
    return found


def _breaks_nowhere(verdicts: Verdicts) -> bool:
    """Whether each is traced, or ends the compiled program with an error."""
    return not any(_breaks({"": verdict}) for verdict in verdicts.values())


def _traces(verdicts: Verdicts) -> bool:
    return set(verdicts.values()) == {None}


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _breaks(verdicts: Verdicts) -> bool:
    return all(kind and not kind.startswith("raises") for kind in verdicts.values())


def _ids(minor: str) -> dict[str, str]:
    newest = json.loads((FOLDER / f"breaks-{torch_facts.versions()[-1]}.json").read_text("utf-8"))["breaks"]
    own = json.loads((FOLDER / f"breaks-{minor}.json").read_text("utf-8"))["breaks"]
    return {entry[0]: number for entries in (newest, own) for number, entry in entries.items()}


def write(python: str) -> dict[str, int]:
    """Measures an interpreter's torch and writes its file; how many names were tried, and how many entries it has."""
    data = facts(python)
    path = FOLDER / f"calls-{_minor(data['version'])}.json"
    path.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    counts = {part: len(data[part]) for part in ("refused", "traced", "forms")}
    told = ", ".join(f"{count} {part}" for part, count in counts.items())
    print(f"{path.name}: of {data['measured']} names {told}", flush=True)
    return {"measured": data["measured"], **counts}


def main() -> None:
    for python in sys.argv[1:]:
        write(python)


if __name__ == "__main__":
    main()

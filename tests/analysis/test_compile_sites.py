"""Compile sites as people write them: what is compiled is found as compiled, what only looks so is not.

In `compile_sites/*.txt`, `== kind: name` begins a kind, `=== name` a form, `# file: path` a further file of it; the
first one is `main.py`. A form is a program. `@net Name standing` stands for a module class with one tensor branch,
`@fn name standing` for such a function, `@gloo` for a process group of one. The standing, also written as a comment
behind a branch, is what TorchDynamo 2.13 does with that line when `main.py` runs: it traces it (`compiled`); it does
not, and a module's forward is assumed to be compiled (`assumed`); it does not (`eager`). `@unrun` marks forms of
frameworks, which are judged by their documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from graphmend.analysis.check import check
from graphmend.analysis.program.project import Project
from graphmend.analysis.syntax.source import Source

from .folder import Folder

FOLDER = Path(__file__).parent / "compile_sites"

_NET = """class {0}(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
    def forward(self, x):
        h = self.fc(x)
        if h.sum() > 0:  # {1}
            h = h * 2
        return h
"""
_FN = """def {0}(x):
    if x.sum() > 0:  # {1}
        return x * 2
    return x + 1
"""
_GLOO = """import torch.distributed as tdist
tdist.init_process_group("gloo", store=tdist.HashStore(), rank=0, world_size=1)
"""
_HEAD = "import torch\nfrom torch import nn\n"


class Form(NamedTuple):
    """One program that compiles something, or looks so."""

    kind: str
    name: str
    files: dict[str, str]
    runs: bool

    def marks(self) -> dict[tuple[str, int], str]:
        """The marked lines, by file and number, and what is true of them."""
        lines = ((path, i, line) for path, text in self.files.items() for i, line in enumerate(text.splitlines(), 1))
        found = ((path, i, re.search(r"# (compiled|assumed|eager)$", line)) for path, i, line in lines)
        return {(path, i): match[1] for path, i, match in found if match is not None}


def forms() -> Iterator[Form]:
    """All forms of the table."""
    for page in sorted(FOLDER.glob("*.txt")):
        for part in re.split(r"(?m)^== kind: ", page.read_text("utf-8"))[1:]:
            kind, _, body = part.partition("\n")
            for form in re.split(r"(?m)^=== ", body)[1:]:
                name, _, text = form.partition("\n")
                parts = re.split(r"(?m)^# file: (.*)\n", text)
                files = {"main.py": _expanded(parts[0])}
                for path, inner in zip(parts[1::2], parts[2::2], strict=True):
                    files[path.strip()] = _expanded(inner) if inner.strip() else ""
                yield Form(kind, name, files, "@unrun" not in text)


def _expanded(text: str) -> str:
    made = [_HEAD] if "@bare" not in text else []
    for line in text.splitlines(keepends=True):
        words = line.split() or [""]
        if words[0] in ("@net", "@fn"):
            made.append((_NET if words[0] == "@net" else _FN).format(*words[1:]))
        elif words[0] == "@gloo":
            made.append(_GLOO)
        elif words[0] not in ("@unrun", "@bare"):
            made.append(line)
    return "".join(made)


FORMS = list(forms())


def standings(form: Form) -> dict[tuple[str, int], str]:
    """The standing of each line with a finding, when all files of a form are checked."""
    project = Project(Folder(form.files))
    found: dict[tuple[str, int], str] = {}
    for path, text in form.files.items():
        result = check(Source(text, path), project)
        for finding in [*result.findings, *(f for its in result.elsewhere.values() for f in its)]:
            place = finding.path, finding.span.line
            found[place] = finding.region if found.get(place) != "compiled" else "compiled"
    return found


@pytest.mark.parametrize("form", [pytest.param(f, id=f"{f.kind}-{f.name}") for f in FORMS])
def test_what_is_compiled(form: Form) -> None:
    found = standings(form)
    for place, standing in form.marks().items():
        if standing == "eager":
            assert found.get(place) != "compiled", place
        else:
            assert found.get(place) == standing, place

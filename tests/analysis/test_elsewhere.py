"""What calls in other modules give is worked out once for a project: who asked first makes no difference."""

from __future__ import annotations

import pytest

from graphmend.analysis.check import Result, check
from graphmend.analysis.program.project import Project
from graphmend.analysis.syntax.source import Source

from .folder import Folder

LIBRARY = """
import torch
from torch import nn

def choose(kind):
    return torch.relu if kind == "relu" else int

class Registry:
    @classmethod
    def make(cls, kind):
        made = cls()
        made.kind = kind
        return made
"""
MODEL = """
import torch
from torch import nn
from library import Registry, choose

class Own(nn.Module, Registry):
    def forward(self, x):
        return CONVERT(x.sum())

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.convert = choose(KIND)
        self.own = Own.make(KIND)

    def forward(self, x: torch.Tensor):
        return self.own(self.convert(x.sum()) + x)
"""
RELU = MODEL.replace("KIND", "'relu'").replace("CONVERT", "torch.relu")
INT = MODEL.replace("KIND", "'int'").replace("CONVERT", "int")


class Library:
    def find(self, module: str) -> tuple[str, str] | None:
        return ("library.py", LIBRARY) if module == "library" else None

    def module_name(self, path: str) -> str | None:
        return path.removesuffix(".py")


def places(result: Result) -> list[tuple[str, int]]:
    return [(finding.code, finding.span.line) for finding in result.findings]


def alone(text: str) -> list[tuple[str, int]]:
    return places(check(Source(text, "model.py"), Project(Library())))


def test_the_order_of_checks_changes_nothing() -> None:
    assert alone(INT)
    assert not alone(RELU)
    for texts in ((INT, RELU), (RELU, INT)):
        project = Project(Library())
        for number, text in enumerate((*texts, *texts)):
            result = check(Source(text, f"model{number}.py"), project)
            assert places(result) == alone(text)
            result.close()


DRIVER = """
import torch

def fast(function):
    return torch.compile(function)
"""
DRIVEN = """
import torch
from driver import fast

def step(x: torch.Tensor):
    print(x)
    return x

step = fast(step)
"""


def test_of_a_library_no_module_is_followed_in_search_of_what_compiles() -> None:
    source, folder = Source(DRIVEN, "driven.py"), Folder({"driver.py": DRIVER})
    assert [finding.code for finding in check(source, Project(folder)).findings] == ["GM201"]
    assert check(source, Project(folder, is_library=True)).findings == ()


def front_door(parts: int) -> Folder:
    """A package whose `__init__` re-exports that many modules, each with a tensor function of its own."""
    texts = {f"lib/part{n}.py": f"import torch\n\ndef scale{n}(x):\n    return x * {n}\n" for n in range(parts)}
    stars = "".join(f"from .part{n} import *\n" for n in range(parts))
    main = "import torch\nfrom lib import scale1, absent\n\nfast = torch.compile(scale1)\nfast(torch.ones(3), absent)\n"
    return Folder({**texts, "lib/__init__.py": stars, "main.py": main})


def test_driver_code_does_not_look_behind_every_module_of_a_front_door() -> None:
    read = {}
    for parts in (3, 40):
        folder = front_door(parts)
        project = Project(folder)
        check(Source(folder.files["main.py"], "main.py"), project)
        read[parts] = sum(name.startswith("lib.part") for name, module in project._modules.items() if module)
    assert read == {3: 3, 40: 0}


BEHIND = """
import torch
from lib import Base, helper

class Net(Base):
    @torch.compile
    def forward(self, x: torch.Tensor):
        return helper(self.scaled(x))
"""
PARTS = {
    "lib/__init__.py": "from lib.base import Base\nfrom lib.part import helper\n",
    "lib/base.py": "from lib.root import Root\n\nclass Base(Root):\n    pass\n",
    "lib/root.py": "class Root:\n    def scaled(self, x):\n        return x\n",
    "lib/part.py": "def helper(x):\n    return x\n",
}


class Inner(Folder):
    """As where a folder is no package: the file itself is imported by its own name."""

    def module_name(self, path: str) -> str | None:
        return path.rpartition("/")[2].removesuffix(".py")


@pytest.mark.parametrize("loader", [Folder, Inner])
@pytest.mark.parametrize("name", ["lib/root.py", "lib/part.py", "lib/new.py"])
def test_a_changed_file_is_seen_through_those_that_pass_it_on(name: str, loader: type[Folder]) -> None:
    texts = {**PARTS, "lib/__init__.py": PARTS["lib/__init__.py"].replace("part", "new")} if "new" in name else PARTS
    folder = loader(texts)
    project = Project(folder)
    found = []
    for text in ("x", "x.sum().item()", "x"):
        if text != "x" or found:
            folder.files = {**texts, name: PARTS.get(name, PARTS["lib/part.py"]).replace("return x", f"return {text}")}
            project.forget(name)
        found.append(len(check(Source(BEHIND, "main.py"), project).elsewhere.get(name, ())))
        project.forget("main.py")
    assert found == [0, 1, 0]

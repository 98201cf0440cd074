"""Which targets a sweep finds, by reading files: nothing of them runs here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from graphmend.cli.failures import UsageError
from graphmend.cli.sweeping.targets import Targets, inputs_of
from graphmend.cli.sweeping.task import Options
from graphmend.dynamo.requests import Declared, Request
from graphmend.dynamo.service import check

MODELS = """\
import abc
import torch
from torch import nn

class Part(nn.Module):
    def forward(self, x):
        return x + 1

class Base(nn.Module, abc.ABC):
    @abc.abstractmethod
    def body(self, x): ...
    def forward(self, x):
        return self.body(x)

class Net(Base):
    def __init__(self):
        super().__init__()
        self.part = Part()
    def body(self, x):
        return self.part(x)

class Other(nn.Module):
    def forward(self, x: "Net"):
        return x - 1

class NoModel:
    def forward(self, x):
        return x
"""
COMPILED = """\
import re, torch as t
from torch import compile as fast

@t.compile(dynamic=True)
def f(x):
    return x

@fast
def g(x):
    return x

def h(x):
    return x

model = t.compile(backend="eager")(h)
pattern = re.compile("x")
maker = t.compile
if __name__ == "__main__":
    late = fast(h)
"""
FROM_OUTSIDE = """\
import abc
import torch
from typing import Generic, TypeVar
from torch import nn

T = TypeVar("T")

class Mlp(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(3, 3))

class N(nn.Linear):
    pass

class Base(nn.Module, Generic[T]):
    def forward(self, x):
        return x + 1

class Concrete(Base[int]):
    pass

class Layers(nn.ModuleList):
    pass

class Scale(nn.Parameter):
    pass

class Abstract(nn.Linear, abc.ABC):
    @abc.abstractmethod
    def body(self, x): ...

class StillAbstract(Abstract):
    pass

class Whole(Abstract):
    def body(self, x):
        return x

class NotReallyAbstract(nn.Linear):
    @abc.abstractmethod
    def body(self, x): ...
"""
BOUND = """\
import torch

def f(x):
    return x + 1

g: object = torch.compile(f)
a, (b, c) = torch.compile(f), (torch.compile(f), f)
first = second = torch.compile(f)
"""


def found(folder: Path, *texts: str, inputs: tuple[Declared, ...] = ()) -> list[str]:
    targets = Targets(folder, Options(), inputs)
    return [task.target for task in targets.tasks(texts)]


def test_a_folder_gives_each_model_that_is_no_part_of_another(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "models.py").write_text(MODELS)
    (folder / "compiled.py").write_text(COMPILED)
    (folder / "helper.py").write_text("import torch\n\ndef f(x):\n    return x\n")
    (folder / "broken.py").write_text("import torch\ndef f(:\n")
    assert found(folder, ".") == [
        "broken.py",
        "compiled.py:f",
        "compiled.py:g",
        "compiled.py:model",
        "sub/models.py:Net",
        "sub/models.py:Other",
    ]


def test_a_file_that_is_named_has_its_line_although_nothing_in_it_can_be_run(folder: Path) -> None:
    """The check itself says so then."""
    (folder / "helper.py").write_text("x = 1\n")
    assert found(folder, "helper.py") == ["helper.py"]
    assert found(folder, ".") == []


@pytest.mark.torch
def test_the_rule_is_that_of_the_worker(folder: Path) -> None:
    """Reading a file finds what the check finds that imports it."""
    for text in (MODELS, COMPILED, FROM_OUTSIDE, BOUND):
        (folder / "models.py").write_text(text)
        report = check(Request(path=str(folder / "models.py"), device="cpu", interpreter=sys.executable))
        assert [f"models.py:{target.name}" for target in report.targets] == found(folder, "models.py")


def test_names_lists_and_packages(folder: Path) -> None:
    package = folder / "zoo"
    (package / "a").mkdir(parents=True)
    for file in (package / "__init__.py", package / "a" / "__init__.py"):
        file.write_text("")
    (package / "a" / "net.py").write_text(MODELS)
    (package / "two-words.py").write_text(MODELS)
    (folder / "list.txt").write_text("zoo/a/net.py::Part  # a part, by name\n\nzoo.a.net:Net\nzoo/a/net.py:Part\n")
    assert found(folder, "list.txt") == ["zoo/a/net.py:Part", "zoo.a.net:Net"]
    assert found(folder, "zoo") == [  # a folder of the current one
        "zoo/a/net.py:Net",
        "zoo/a/net.py:Other",
        "zoo/two-words.py:Net",
        "zoo/two-words.py:Other",
    ]
    assert found(folder, "zoo.a") == ["zoo.a.net:Net", "zoo.a.net:Other"]
    assert found(folder, "zoo.a.net") == ["zoo.a.net:Net", "zoo.a.net:Other"]
    for wrong in ("missing.py", "no_such_package", "no_such_package:Net"):
        with pytest.raises(UsageError):
            found(folder, wrong)


def test_a_base_class_in_another_file_is_followed(folder: Path) -> None:
    (folder / "base.py").write_text("from torch import nn\n\nclass Mine(nn.Module):\n    pass\n")
    (folder / "net.py").write_text(
        "from base import Mine\n\nclass Net(Mine):\n    def forward(self, x):\n        return x\n"
    )
    assert found(folder, "net.py") == ["net.py:Net"]


def test_inputs_of_a_file_say_what_is_run_and_how(folder: Path) -> None:
    (folder / "models.py").write_text(MODELS)
    entry = '[[targets]]\ntarget = "models.py:Part"\ninit = "Part()"\ninputs = "(torch.ones(2),)"\n'
    (folder / "inputs.toml").write_text(entry)
    inputs = inputs_of(Path("inputs.toml"))
    (task,) = Targets(folder, Options(), inputs).tasks(["."])
    assert (task.target, task.declared) == ("models.py:Part", inputs)
    (folder / "empty.toml").write_text("")
    with pytest.raises(UsageError):
        inputs_of(Path("empty.toml"))


def test_entries_of_the_configuration_count_too(folder: Path) -> None:
    (folder / "models.py").write_text(MODELS)
    (folder / "graphmend.toml").write_text('[[targets]]\ntarget = "models.py:Other"\n')
    assert found(folder, ".") == ["models.py:Other"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("list.txt", r"list.txt:2: .*list.txt lists itself"),
        ("x" * 5000, r"list.txt:2: x{160} is no target: file name too long"),
        ("no_such_package", r"list.txt:2: no_such_package is neither"),
        (":Net", r"list.txt:2: :Net is no target"),
        ("zoo:Net", r"list.txt:2: zoo is a folder, which has no Net"),
        ("other.txt:Net", r"list.txt:2: other.txt is no Python file"),
        ("a\0b", r"list.txt:2: .* is no target"),
    ],
)
def test_a_bad_line_of_a_list_is_told_with_its_number(folder: Path, text: str, told: str) -> None:
    (folder / "zoo").mkdir()
    (folder / "other.txt").touch()
    (folder / "models.py").write_text(MODELS)
    (folder / "list.txt").write_text(f"models.py:Net\n{text}\n")
    with pytest.raises(UsageError, match=told):
        found(folder, "list.txt")


@pytest.mark.parametrize("text", ["", ":Net", "models.py:"])
def test_a_text_without_a_place_or_name_is_no_target(folder: Path, text: str) -> None:
    (folder / "models.py").write_text(MODELS)
    with pytest.raises(UsageError, match="is no target"):
        found(folder, text)

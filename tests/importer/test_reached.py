"""What is compiled is mended as far as TorchDynamo comes to it, and before it does."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from whole_programs import Run

from graphmend.importer import tested_torch

pytestmark = pytest.mark.torch

PROGRAM = """import contextlib
import functools
import sys
import torch
import gm_net, gm_other
from torch._dynamo.utils import counters

net = gm_net.Net()
{made}
for sign in (1.0, -1.0):
    print(compiled(sign * torch.ones(2)).tolist())
print("breaks", sum(counters["graph_break"].values()), "frames", counters["frames"]["total"])
"""
NET = """import torch
import gm_helper


class Net(torch.nn.Module):
    def forward(self, x):
        return gm_helper.signed(x) + 1
"""
HELPER = """import torch


def signed(x: torch.Tensor):
    if x.sum() > 0:
        return x * 2
    return x + 1
"""
OTHER = HELPER.replace("signed", "other")
PACKAGES = ["gm_net", "gm_helper", "gm_other"]
RIGHT = "[3.0, 3.0]\n[1.0, 1.0]\n"


@pytest.fixture
def report(tmp_path: Path, run_warm: Run) -> Report:
    pytest.importorskip("torch", minversion="2.13")
    return Report(tmp_path, run_warm)


class Report:
    """What `graphmend run` says that it has done to the packages of a program."""

    def __init__(self, folder: Path, run: Run) -> None:
        self.folder, self.run = folder, run

    def of(self, *more: str, **files: str) -> tuple[str, Sequence[str], Sequence[str]]:
        """What the program prints, and the names of the modules that are mended, and of those that wait."""
        mend = [word for name in PACKAGES for word in ("--mend", name)]
        done = self.run(*mend, *more, "--report", "report.json", "program.py", **files)
        assert done.status == 0, done.said
        said = json.loads((self.folder / "report.json").read_text())
        assert said["problems"] == []
        return done.stdout, *(
            sorted(Path(path).stem for path in paths)
            for paths in ([entry["path"] for entry in said["mended"]], said["waiting"])
        )


ROOTS = {
    "module": "compiled = torch.compile(net, backend='eager')",
    "whole graph": "compiled = torch.compile(net, backend='eager', fullgraph=True)",
    "function": "compiled = torch.compile(lambda x: net(x), backend='eager')",
    "method": "compiled = torch.compile(net.forward, backend='eager')",
    "partial": "compiled = torch.compile(functools.partial(gm_net.Net.forward, net), backend='eager')",
    "in place": "net.compile(backend='eager'); compiled = net",
    "in the standard library": """
@contextlib.contextmanager
def context():
    yield

compiled = torch.compile(context()(net.forward), backend="eager")""",
    "hook": """
def hook(module, inputs):
    return gm_net.gm_helper.signed(inputs[0]) * 0 + inputs[0]

net.register_forward_pre_hook(hook)
compiled = torch.compile(net, backend='eager')""",
}


@pytest.mark.parametrize("made", ROOTS.values(), ids=ROOTS)
def test_what_nothing_comes_to_is_not_mended(report: Report, made: str) -> None:
    program = PROGRAM.format(made=made)
    for _ in range(2):  # the second time from the cache
        stdout, mended, waiting = report.of(program=program, gm_net=NET, gm_helper=HELPER, gm_other=OTHER)
        assert stdout.startswith(f"{RIGHT}breaks 0 ")
        assert (mended, waiting) == (["gm_helper"], ["gm_other"])


BROKEN = NET.replace("return ", "torch._dynamo.graph_break()\n        return ")


def test_what_runs_after_a_break_is_mended(report: Report) -> None:
    program = PROGRAM.format(made=ROOTS["module"])
    stdout, mended, waiting = report.of(program=program, gm_net=BROKEN, gm_helper=HELPER, gm_other=OTHER)
    assert stdout.startswith(f"{RIGHT}breaks 1 ")
    assert (mended, waiting) == (["gm_helper", "gm_other"], [])


TWICE = """import importlib
import torch
from gm_net import helper


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.part = importlib.import_module("gm_net.other").Part()

    def forward(self, x):
        y = self.part(helper.scaled(x, 1))
        torch._dynamo.graph_break()
        return y + 1
"""
SCALED = """def scaled(x, n):
    x = x + 0
    if n > 0:
        x = x + n - n
    else:
        x = x - n + n
    return x
"""
CALLS = """import torch
from gm_net import helper


class Part(torch.nn.Module):
    def forward(self, x):
        return helper.scaled(x, x.sum()) * 2
"""


def test_what_was_traced_is_mended_because_of_what_is_traced_later(report: Report) -> None:
    """TorchDynamo traces such a frame again, and has to come to the same places then."""
    package = {"gm_net__in____init__": "from gm_net.net import Net\n", "gm_net__in__net": TWICE}
    package |= {"gm_net__in__helper": SCALED, "gm_net__in__other": CALLS}
    program = PROGRAM.format(made=ROOTS["module"]).replace(", gm_other", "")
    stdout, mended, _ = report.of("--unsafe", program=program, **package)
    assert stdout == "[3.0, 3.0]\n[-1.0, -1.0]\nbreaks 1 frames 2\n"
    assert mended == ["helper"]


LOOKED_AT = """import torch
import gm_net, gm_helper
from torch._dynamo.utils import counters

asks, signed = (torch.compile(each, backend="eager") for each in (gm_net.asks, gm_helper.signed))
for x in (torch.ones(2), -torch.ones(2)):
    for _ in range(2):
        print(asks(x, gm_helper.signed).tolist(), signed(x).tolist())
print("graphs", counters["stats"]["unique_graphs"])
"""
ASKS = """import gm_helper


def asks(x, f):
    return x + 1 if f is gm_helper.signed else x - 1
"""


def test_what_a_frame_looks_at_is_mended_before_its_code_is_guarded(report: Report) -> None:
    stdout, mended, _ = report.of(program=LOOKED_AT, gm_net=ASKS, gm_helper=HELPER)
    assert stdout == "[2.0, 2.0] [2.0, 2.0]\n" * 2 + "[0.0, 0.0] [0.0, 0.0]\n" * 2 + "graphs 2\n"
    assert mended == ["gm_helper"]


SKIPPED = """import contextlib
import torch
import gm_net
from torch._dynamo.utils import counters

root = torch.compile(gm_net.within, backend="eager")
print(root(abs, torch.ones(2)).tolist())
import gm_helper

before = sum(counters["graph_break"].values())
for sign in (1.0, -1.0):
    print(root(gm_helper.signed, sign * torch.ones(2)).tolist())
print("breaks", sum(counters["graph_break"].values()) - before)
"""
WITHIN = """import torch


class Context:
    def __enter__(self):
        torch._dynamo.graph_break()

    def __exit__(self, *error):
        return False


def within(f, x):
    with Context():
        torch._dynamo.graph_break()
        return f(x)
"""


def test_what_is_imported_after_a_break_is_mended_before_the_next_call(report: Report) -> None:
    stdout, mended, _ = report.of(program=SKIPPED, gm_net=WITHIN, gm_helper=HELPER)
    assert stdout.startswith("[1.0, 1.0]\n[2.0, 2.0]\n[0.0, 0.0]\n")
    assert "gm_helper" in mended
    assert stdout.endswith("breaks 0\n")


MAKES = """import torch
import gm_helper


def made():
    def inner(x: torch.Tensor):
        if x.sum() > 0:
            return x * 2
        return x + 1

    return inner


def train():
    first = torch.compile(gm_helper.signed, backend="eager")(torch.ones(2))
    inner = torch.compile(made(), backend="eager", fullgraph=True)
    return [first.tolist(), *(inner(sign * torch.ones(2)).tolist() for sign in (1.0, -1.0))]
"""


def test_a_function_that_old_code_has_made_is_mended(report: Report) -> None:
    program = "import gm_net\n\nprint(gm_net.train())\n"
    stdout, mended, _ = report.of(program=program, gm_net=MAKES, gm_helper=HELPER)
    assert stdout == "[[2.0, 2.0], [2.0, 2.0], [0.0, 0.0]]\n"
    assert mended == ["gm_helper", "gm_net"]


PROPERTY = """import torch

reads = 0


class Net(torch.nn.Module):
    @property
    def forward(self):
        global reads
        reads += 1
        return lambda x: x + reads


class Called:
    def __getattr__(self, name):
        global reads
        if not name.startswith("_torch"):
            reads += 100
        raise AttributeError(name)

    def __call__(self, x):
        return x * 2
"""


def test_nothing_of_a_module_is_asked_for(report: Report) -> None:
    program = (
        "import gm_net, gm_helper, torch\ncompiled = torch.compile(gm_net.Net(), backend='eager')\n"
        "print([compiled(torch.ones(1)).item() for _ in range(3)], gm_net.reads)\n"
        "called = torch.compile(gm_net.Called(), backend='eager')\nbefore = gm_net.reads\n"
        "print(called(torch.ones(1)).item(), gm_net.reads - before)\n"
    )
    stdout, *_ = report.of(program=program, gm_net=PROPERTY, gm_helper=HELPER)
    plain = report.run("program.py", plain=True)
    assert stdout == plain.stdout


def test_torch_is_tested_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMEND_CACHE_DIR", str(tmp_path))
    asked: list[bool] = []

    def test(passes: bool) -> bool:
        asked.append(passes)
        return passes

    import torch

    assert not tested_torch.passes(lambda: test(False))
    assert tested_torch.passes(lambda: test(True))
    assert tested_torch.passes(lambda: test(False)), "it is known"
    monkeypatch.setattr(sys.modules["torch"], "__version__", torch.__version__ + ".1")
    assert not tested_torch.passes(lambda: test(False))
    assert asked == [False, True, False]


DEEP = """import sys
import torch
from graphmend.importer import install

sys.path.insert(0, ".")
importer = install(["gm_net"], later=True)
import gm_net

compiled = torch.compile(gm_net.Net(), backend="eager", fullgraph=True)
print(compiled(torch.ones(2)).tolist(), len(importer.report.mended), importer.report.problems)
"""
NESTED = """import torch
import gm_net.helper


def down(n, x):
    return down(n - 1, x) if n else gm_net.helper.signed(x)


class Net(torch.nn.Module):
    def forward(self, x):
        return down(32, x)
"""


def test_what_is_reached_deep_in_a_frame_is_mended_without_another_process(run_warm: Run) -> None:
    pytest.importorskip("torch", minversion="2.13")
    package = {"gm_net__in____init__": "from gm_net.net import Net\n", "gm_net__in__net": NESTED}
    done = run_warm("program.py", plain=True, program=DEEP, gm_net__in__helper=HELPER, **package)
    assert done.stdout == "[2.0, 2.0] 1 {}\n", done.stderr

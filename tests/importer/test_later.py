"""Modules that run their own code until something is compiled, and are mended then."""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from whole_programs import Run

from graphmend.importer.code import code_swap
from graphmend.importer.hook import Importer
from graphmend.importer.outcome import Outcome, Texts
from graphmend.importer.targets import Targets

MODULE = """import functools

seen = []


def plain(n, by=1):
    return n + by


def made(k):
    def inner(n):
        return n + k

    return inner


@functools.lru_cache
def cached(n):
    return n + 1


class Thing:
    table = {"key": lambda n: n + 1}

    def method(self, n):
        return n + 1

    @property
    def value(self):
        return 0 + 1


held = functools.partial(plain, by=1)
closed = made(1)
seen.append(plain(0))
"""


class Mender:
    """Mends as it is told, in the order that it is told."""

    def __init__(self, change: Callable[[str], str | None]) -> None:
        self.change = change
        self.expected: list[str] = []
        self.mended: list[str] = []

    def mend(self, text: str, path: str, texts: Texts) -> Outcome:
        self.mended.append(Path(path).stem)
        return Outcome(self.change(text), [{"code": "GM101"}])

    def load(self, text: str, path: str, texts: Texts) -> None:
        return None

    def store(self, text: str, path: str, code: CodeType | None, outcome: Outcome) -> None: ...

    def expect(self, path: str, by_program: bool) -> None:
        self.expected.append(Path(path).stem)

    def in_order(self, paths: Sequence[str]) -> Sequence[str]:
        return sorted(paths, reverse=True)

    def end(self) -> None: ...


Start = Callable[..., tuple[Importer, Mender]]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    before, installed = dict(sys.modules), []

    def start(change: Callable[[str], str | None], **files: str) -> tuple[Importer, Mender]:
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path))
        mender = Mender(change)
        importer = Importer(Targets([], [tmp_path]), mender, defers=True)
        importer.install()
        installed.append(importer)
        return importer, mender

    yield start
    for importer in installed:
        importer.uninstall()
    for name in sys.modules.keys() - before.keys():
        del sys.modules[name]


def by_ten(text: str) -> str:
    return text.replace("+ 1", "+ 10").replace("n + by", "n + by * 10").replace("n + k", "n + k * 10")


def _all(module: Any) -> list[int]:
    thing = module.Thing()
    return [
        module.plain(0),
        module.held(0),
        module.closed(0),
        module.cached.__wrapped__(0),
        thing.table["key"](0),
        thing.method(0),
        thing.value,
    ]


@pytest.mark.parametrize("frozen", [False, True])
def test_functions_are_mended_wherever_they_are_held(start: Start, tmp_path: Path, frozen: bool) -> None:
    importer, mender = start(by_ten, gm_mod=MODULE)
    module = importlib.import_module("gm_mod")
    method = module.Thing().method
    assert _all(module) == [1] * 7
    assert list(importer.report.waiting) == [str(tmp_path / "gm_mod.py")]
    assert (importer.report.mended, mender.mended, mender.expected) == ({}, [], ["gm_mod"])
    if frozen:
        gc.freeze()
    try:
        importer.mend_waiting()
    finally:
        gc.unfreeze()
    assert _all(module) == [10] * 7
    assert method(0) == 10
    assert module.seen == [1], "nothing runs again"
    assert list(importer.report.mended) == [str(tmp_path / "gm_mod.py")]
    assert importer.report.waiting == {}
    importer.mend_waiting()
    assert mender.mended == ["gm_mod"]


def test_what_a_module_makes_after_it_was_mended_is_mended_as_well(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    importer, mender = start(by_ten, gm_mod="import sys\n\nsys.compiles()\n" + MODULE)
    monkeypatch.setattr(sys, "compiles", importer.mend_waiting, raising=False)
    module = importlib.import_module("gm_mod")
    assert _all(module) == [10] * 7
    assert (mender.mended, importer.report.waiting) == (["gm_mod"], {})


def test_in_the_order_of_the_mender_and_again_for_what_comes_later(start: Start) -> None:
    _, mender = start(by_ten, gm_a=MODULE, gm_b=MODULE, gm_c=MODULE)
    importer = next(f for f in sys.meta_path if isinstance(f, Importer))
    for names in (("gm_a", "gm_b"), ("gm_c",)):
        modules = [importlib.import_module(name) for name in names]
        importer.mend_waiting()
        assert [module.plain(0) for module in modules] == [10] * len(names)
    assert mender.mended == ["gm_b", "gm_a", "gm_c"]


def test_a_child_does_not_wait_for_a_thread_of_its_parent(start: Start) -> None:
    importer, _ = start(by_ten, gm_mod=MODULE)
    importer.mend_before(lambda mending: lambda: False, lambda: None)
    module = importlib.import_module("gm_mod")
    with ThreadPoolExecutor(1) as other:
        other.submit(importer._turn.acquire).result()
        if (child := os.fork()) == 0:
            signal.alarm(30)
            importer.mend_waiting()
            os._exit(module.plain(0))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 10
        other.submit(importer._turn.release).result()


def test_a_reload_runs_the_new_text_until_it_is_mended(start: Start, tmp_path: Path) -> None:
    importer, _ = start(by_ten, gm_mod=MODULE)
    module = importlib.import_module("gm_mod")
    old = module.plain
    importer.mend_waiting()
    (tmp_path / "gm_mod.py").write_text(MODULE.replace("n + by", "n - by").replace("seen = []", "seen = [None]"))
    assert importlib.reload(module).plain(0) == -1
    importer.mend_waiting()
    assert (module.plain(0), module.Thing().value, old(0)) == (-1, 10, 10)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("seen = []", "seen = [0]"),
        ("by=1):", "by=2):"),
        ("def method(self, n)", "def method(self, n, m=0)"),
        ("    table", "    more = 1\n    table"),
        ("@property\n", "@functools.cached_property\n"),
    ],
)
def test_what_is_more_than_bodies_stays_as_it_was(start: Start, tmp_path: Path, old: str, new: str) -> None:
    importer, _ = start(lambda text: by_ten(text).replace(old, new), gm_mod=MODULE)
    module = importlib.import_module("gm_mod")
    importer.mend_waiting()
    assert _all(module) == [1] * 7
    assert importer.report.mended == {}
    assert "stays as it was" in importer.report.problems[str(tmp_path / "gm_mod.py")]


PROGRAM = """import sys
import torch
import gm_net
from torch._dynamo.utils import counters

net = gm_net.Net()
print(net(torch.ones(2)).tolist())
if sys.argv[1:]:
    compiled = torch.compile(net, backend="eager")
    for sign in (1.0, -1.0):
        print(compiled(sign * torch.ones(2)).tolist())
    print("breaks", sum(counters["graph_break"].values()))
"""
NET = """import torch


class Net(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return x + 1
"""
OUTER = """import torch


class Net(torch.nn.Module):
    def forward(self, x):
        import gm_late

        return gm_late.Net.forward(self, x)
"""


@pytest.mark.torch
def test_a_named_package_is_mended_when_something_is_compiled(run_warm: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch", minversion="2.13")
    words = ["--mend", "gm_net", "--report", "report.json", "program.py"]
    eager = run_warm(*words, program=PROGRAM, gm_net=NET)
    assert (eager.status, eager.stdout) == (0, "[2.0, 2.0]\n")
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["mended"], report["waiting"]) == ([], [str(tmp_path / "gm_net.py")])
    for _ in range(2):  # the second time from the cache
        compiled = run_warm(*words, "compiled")
        assert compiled.stdout == "[2.0, 2.0]\n[2.0, 2.0]\n[0.0, 0.0]\nbreaks 0\n"
        report = json.loads((tmp_path / "report.json").read_text())
        assert ([entry["path"] for entry in report["mended"]], report["waiting"]) == ([str(tmp_path / "gm_net.py")], [])
    assert run_warm(*words[:2], "program.py").said == [
        "graphmend: nothing was mended",
        "graphmend: 1 module was not mended: nothing that was compiled came to it",
    ]


DISABLED = """import torch


@torch.compiler.disable
def late():
    import gm_late

    return gm_late


class Net(torch.nn.Module):
    def forward(self, x):
        return late().Net.forward(self, x)
"""


@pytest.mark.torch
@pytest.mark.parametrize("outer", [OUTER, DISABLED])
def test_nothing_waits_while_something_is_compiled(run_warm: Run, tmp_path: Path, outer: str) -> None:
    pytest.importorskip("torch", minversion="2.13")
    program = PROGRAM.replace("print(net(torch.ones(2)).tolist())\n", "")
    words = ["--mend", "gm_net", "--mend", "gm_late", "--report", "report.json", "program.py", "compiled"]
    done = run_warm(*words, program=program, gm_net=outer, gm_late=NET)
    assert done.stdout == f"[2.0, 2.0]\n[0.0, 0.0]\nbreaks {int(outer is DISABLED)}\n"
    report = json.loads((tmp_path / "report.json").read_text())
    assert [Path(entry["path"]).stem for entry in report["mended"]] == ["gm_late"]


EXPORTS = """import sys
import torch
import gm_net

net = gm_net.Net()
if sys.argv[1] == "aot":
    torch.compile(net, backend="eager", fullgraph=True).forward.aot_compile(((torch.ones(2),), {}))
else:
    exported = torch.export.export(net, (torch.ones(2),), strict=sys.argv[1] == "strict").module()
    print(exported(torch.ones(2)).tolist(), exported(-torch.ones(2)).tolist())
"""


@pytest.mark.torch
@pytest.mark.parametrize("how", ["export", "strict", "aot"])
def test_what_is_exported_is_mended_before(run: Run, tmp_path: Path, how: str) -> None:
    pytest.importorskip("torch", minversion="2.13")
    words = ["--mend", "gm_net", "--report", "report.json", "program.py", how]
    done = run(*words, program=EXPORTS, gm_net=NET)
    if how != "aot":
        assert done.stdout == "[2.0, 2.0] [0.0, 0.0]\n"
    report = json.loads((tmp_path / "report.json").read_text())
    assert ([Path(entry["path"]).stem for entry in report["mended"]], report["waiting"]) == (["gm_net"], [])


def test_another_thread_waits_until_functions_have_their_code(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it is about to compile may be the last of what is mended, and not be replaced yet."""
    importer, _ = start(by_ten, gm_mod=MODULE)
    module = importlib.import_module("gm_mod")
    swapping, seen = threading.Event(), []
    swap = code_swap.swap

    def slowly(*arguments: Any) -> Any:
        swapping.set()
        other.join(0.2)
        return swap(*arguments)

    def compiles() -> None:
        swapping.wait(10)
        importer.mend_waiting()
        seen.append(module.plain(0))

    other = threading.Thread(target=compiles)
    monkeypatch.setattr(code_swap, "swap", slowly)
    other.start()
    importer.mend_waiting()
    other.join()
    assert seen == [10]

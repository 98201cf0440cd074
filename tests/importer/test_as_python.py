"""A program that is mended while it runs behaves as under plain Python: what runs, how often, and what it sees."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from whole_programs import Run

from graphmend.importer import Importer, install

pytest.importorskip("torch", minversion="2.13")
pytestmark = pytest.mark.torch

MENDED = '''"""Doc."""
from torch import Tensor


def forward(x: Tensor):
    """Doc of forward."""
    print("sum", x.sum())
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    return y


def own_names(x: Tensor):
    if x.sum() > 0:
        y = x + 1
    else:
        y = x - 1
    return sorted(locals())


class Net:
    def forward(self, x: Tensor):
        def inner(torch):
            return torch

        if x.sum() > 0:
            y = x * 2
        else:
            y = x - 1
        return inner(y)
'''
COMPILED = """
import torch
torch.compile(forward, backend="eager")
torch.compile(own_names, backend="eager")
torch.compile(Net().forward, backend="eager")
"""
SHOW = """
import inspect
x = torch.ones(2)
print(forward(x), own_names(x), Net().forward(-x), forward.__doc__, forward.__code__.co_firstlineno)
print([name for name in dir() if "inductor" not in name], sorted(vars()), __annotations__)
print(inspect.getsource(forward))
"""


def same(run: Run, *words: str, **files: str) -> None:
    """The program does the same plainly and mended, and something of it is mended."""
    expected, got = run(*words, plain=True, **files), run("--unsafe", *words, **files)
    assert (got.status, got.stdout, got.stderr) == (expected.status, expected.stdout, expected.stderr)
    assert got.said[0].startswith("graphmend: mended"), got.said


def test_a_program_sees_its_own_names_only(run: Run) -> None:
    modules = """
import model
print(dir(model), model.__doc__)
def star():
    names = {}
    exec("from model import *", names)
    return sorted(names)
print(star())
"""
    by_value = """
import marshal, types
code = marshal.loads(marshal.dumps(forward.__code__))
print(types.FunctionType(code, {"__builtins__": __builtins__, "torch": torch})(torch.ones(2)))
"""
    same(run, "program.py", program=MENDED + COMPILED + SHOW + modules + by_value, model=MENDED + COMPILED)


def test_the_runtime_stays_in_the_graph(run_warm: Run) -> None:
    program = f"""{MENDED}{COMPILED}
from torch._dynamo.utils import counters
for function in (forward, Net().forward):
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    print([compiled(sign * torch.ones(2)).tolist() for sign in (1, -1)])
print(counters["graph_break"])
"""
    plain = run_warm("program.py", plain=True, program=program.replace("fullgraph=True", "fullgraph=False"))
    mended = run_warm("--unsafe", "program.py", program=program)
    assert mended.stdout.splitlines()[:-1] == plain.stdout.splitlines()[:-1]
    assert mended.stdout.splitlines()[-1] == "Counter()"


FAILS = """
print("runs")
open("log", "a").write("ran ")
def fails(n):
    return 1 / n
"""
PROGRAM = """import traceback, warnings
for name in ("divides", "misses", "raises", "calls", "whole", "broken", "warns"):
    for _ in range(2):
        try:
            __import__(name)
        except Exception:
            print(traceback.format_exc())
print(torch) if "torch" in globals() else print("no torch here")
import divides
"""


def test_a_module_that_raises_runs_once_and_its_traceback_is_its_own(run: Run, tmp_path: Path) -> None:
    start = MENDED + COMPILED + FAILS
    files = {
        "divides": start + "fails(0)\n",
        "misses": start + "import missing\n",
        "raises": start + "raise ImportError('graphmend')\n",
        "calls": start + "import divides\n",
        "whole": start + "print(1 is 1, '\\d')\n",
        "broken": "def (:\n",
        "warns": "import warnings\nwarnings.warn('old', stacklevel=2)\n" + start,
    }
    same(run, "program.py", program=PROGRAM, **files)
    ran = (tmp_path / "log").read_text().split()
    assert len(ran) == 2 * (2 * (1 + 1 + 1 + 2) + 1 + 1 + 1), "each attempt in each of two programs runs once"


def test_nothing_is_imported_before_the_program_does(run: Run) -> None:
    says = "import sys\nprint('torch' in sys.modules)\n"
    same(run, "program.py", program=f"{says}import model\n{says}", model=says + MENDED + COMPILED)


def test_a_runtime_that_cannot_be_loaded_is_noticed_before_the_module_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHMEND_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "graphmend.runtime", None)
    (tmp_path / "gm_model.py").write_text(f"{MENDED}{COMPILED}open({str(tmp_path / 'log')!r}, 'a').write('ran ')\n")
    importer: Importer = install([], folders=[tmp_path])
    try:
        importlib.import_module("gm_model")
    finally:
        importer.uninstall()
        sys.modules.pop("gm_model", None)
    assert (tmp_path / "log").read_text() == "ran "
    assert importer.report.mended == {}
    assert "graphmend.runtime" in importer.report.problems[str(tmp_path / "gm_model.py")]


SAYS = """
import torch

@torch.compile
def f(x):
    print("in f")
    return x
"""

#: none of it may find the process in which modules are mended
ALONE = """
import os
try:
    print("waited for", os.wait())
except ChildProcessError:
    print("no child")
child = os.fork()
if child == 0:
    import in_child
    os._exit("emit" not in in_child.f.__wrapped__.__code__.co_names)
print("status", os.waitpid(child, 0)[1])
import early, sys
print("emit" in early.f.__wrapped__.__code__.co_names, "graphmend.transforms.mend" in sys.modules)
os.closerange(3, 1024)
file = open("out.txt", "w")
import late
file.close()
print(open("out.txt").read() == "")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="copies a process")
def test_the_process_that_mends_is_not_the_programs(run: Run) -> None:
    files = {"alone": ALONE, "in_child": SAYS, "early": SAYS, "late": SAYS}
    done = run("alone.py", **files)
    assert done.stderr == []
    assert done.stdout.splitlines() == ["no child", "status 0", "True False", "True"]
    assert any(line.endswith("late.py") for line in done.said)


#: a signal comes while `large` is mended, and its handler imports
INTERRUPTED = """
import signal, sys, time, torch
def handler(*_):
    import early
    print("early")
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.1)
import large
time.sleep(0 if "early" in sys.modules else 1)
print(large.f0.__name__)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="where modules are mended in a process of their own")
def test_a_signal_handler_may_import_while_a_module_is_mended(run: Run) -> None:
    large = SAYS + "".join(SAYS.partition("@")[2].replace("torch.compile\ndef f", f"\ndef f{i}") for i in range(300))
    early = SAYS.replace("@torch.compile\n", "")  # in whose place torch would be imported while it is being imported
    done = run("interrupted.py", interrupted=INTERRUPTED, early=early, large=large)
    assert done.stderr == []
    assert (done.status, done.stdout.split()) == (0, ["early", "f0"])


#: started by what leaves its children to the system
IGNORED = """
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.executable, [sys.executable, "-m", "graphmend", "run", "early.py"])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="where modules are mended in a process of their own")
def test_a_program_that_ignores_the_end_of_children_runs(tmp_path: Path) -> None:
    (tmp_path / "ignored.py").write_text(IGNORED)
    (tmp_path / "early.py").write_text(SAYS + "print('ran')\n")
    done = subprocess.run([sys.executable, "ignored.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr

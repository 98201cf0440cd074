"""What is compiled anew: the findings of family GM7 and the histories behind them, against what TorchDynamo did."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graphmend.analysis.check import check
from graphmend.analysis.driver.history.run import history
from graphmend.analysis.driver.reach import Reach
from graphmend.analysis.findings.suppressions import apply
from graphmend.analysis.incremental.document import IncrementalAnalysis
from graphmend.analysis.interprocedural.session import AnalysisSession
from graphmend.analysis.program.project import Project
from graphmend.analysis.rules import RULES
from graphmend.analysis.settings import Settings
from graphmend.analysis.syntax.source import Source
from graphmend.analysis.torch_facts import versions

from .folder import Folder

sys.path.insert(0, str(Path(__file__).with_name("recompilations")))

import label
import score

EXPECTED: dict[str, Any] = json.loads(label.EXPECTED.read_text(encoding="utf-8"))["programs"]
PROGRAMS = label.programs()

#: programs whose compilations are not counted rightly, each with the reason
COUNTED_OTHERWISE = {
    "sites/compile_fresh_source": "text that `exec` runs is not read",
    "arguments/lr_from_optimizer": "schedulers are not followed",
    "draws/masked_rows": "how many rows a mask keeps is not known",
    "loops/gpt_sliding_window": "strides are known as contiguous or not",
    "loops/history_deque_of_fixed_length": "whether two items are one tensor is not compared",
    "workshop/replay_window_is_full": "whether two items are one tensor is not compared",
    "workshop/scheduler_drives_a_compiled_step": "schedulers are not followed",
    "kinds/past_key_values_none_then_tuple": "sizes of the parts of a chunk along the last dimension are not known",
}

COUNTER = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = 0

    def forward(self, x):
        self.steps += 1
        return x * self.steps


def calls():
    net = torch.compile(Net())
    for _ in range(3):
        net(torch.ones(4))
"""


def test_every_program_has_its_label() -> None:
    assert PROGRAMS.keys() == EXPECTED.keys()
    assert score.held_back() <= PROGRAMS.keys()
    quiet = sum(not truth["again"] for truth in EXPECTED.values())
    assert len(EXPECTED) / 2 - 1 <= quiet <= len(EXPECTED) / 2 + 1


@pytest.mark.parametrize("apart", [False, True], ids=["known", "held-back"])
def test_recall_and_precision(apart: bool) -> None:
    held = score.held_back()
    made = score.score(set(held) if apart else PROGRAMS.keys() - held)
    assert made.recall >= 0.90, made.said
    assert made.precision >= 0.97, made.said


@pytest.mark.parametrize("name", PROGRAMS)
def test_histories_count_compilations(name: str) -> None:
    """As often as TorchDynamo compiles a function anew, a history says so."""
    project = Project()
    module = project.read(Source(PROGRAMS[name], "program.py"))
    assert module is not None
    session = AnalysisSession(module, project, Settings())
    said = sum(len(one.changes) for one in history(session, module, Reach(project, module)).variations)
    counted = said == EXPECTED[name]["again"]
    assert counted is (name not in COUNTED_OTHERWISE)


_LABELS = """
import json, os, sys, label
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what programs print
for name in sys.stdin:
    print(json.dumps(label.label({"it": label.programs()[name.strip()]})["it"]), file=answers, flush=True)
"""


@pytest.fixture(scope="module")
def labelled() -> Iterator[Callable[[str], dict[str, Any]]]:
    """Labels a program again, in a process that has imported torch once."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([sys.executable, "-c", _LABELS], cwd=label.HERE, text=True, **pipes)
    assert process.stdin is not None
    assert process.stdout is not None
    names, answers = process.stdin, process.stdout

    def ask(name: str) -> dict[str, Any]:
        names.write(f"{name}\n")
        names.flush()
        answer: dict[str, Any] = json.loads(answers.readline())
        return answer

    yield ask
    names.close()
    process.wait(120)


@pytest.mark.torch
@pytest.mark.parametrize("name", sorted(PROGRAMS)[::12])
def test_labels_are_what_torch_says(name: str, labelled: Callable[[str], dict[str, Any]]) -> None:
    """A sample of the labels; `label.py` makes all of them again."""
    again = labelled(name)
    assert (again["again"], again["varies"]) == (EXPECTED[name]["again"], EXPECTED[name]["varies"])


RULES_OF_FAMILY = [rule for rule in RULES if rule.code.startswith("GM7")]


@pytest.mark.torch
def test_pages_give_a_guard_as_torch_prints_it() -> None:
    """Of one of the examples of each rule that compile anew."""
    texts = {
        f"{rule.code} {i}": text
        if "def calls" in text
        else f"{text}\n\ndef calls():\n    for given in example_inputs():\n        f(*given)\n"
        for rule in RULES_OF_FAMILY
        for i, text in enumerate(rule.invalid)
    }
    code = "import json, sys, label; print(json.dumps(label.label(json.load(sys.stdin))))"
    command = [sys.executable, "-c", code]
    ran = subprocess.run(
        command, cwd=label.HERE, input=json.dumps(texts), capture_output=True, text=True, timeout=300, check=True
    )
    said = json.loads(ran.stdout.splitlines()[-1])
    for rule in RULES_OF_FAMILY:
        given = re.findall(r"`([^`]+)`", " ".join((rule.__doc__ or "").split()))
        guards = [guard for name in texts if name.startswith(rule.code) for guard in said[name]["guards"]]
        assert any(guard.startswith(text) for guard in guards for text in given), (rule.code, guards)


def test_a_finding_gives_its_guard_and_its_call() -> None:
    (finding,) = check(Source(COUNTER, "net.py")).findings
    assert (finding.code, finding.effect, finding.span.line) == ("GM701", "recompiles", 10)
    assert "self.steps == 0" in finding.evidence[1]
    assert [one.span.line for one in finding.related] == [15, 17]


@pytest.mark.parametrize("code", ["GM503", "GM701", "GM7"])
def test_comments_know_the_old_code(code: str) -> None:
    text = COUNTER.replace("self.steps += 1", f"self.steps += 1  # graphmend: ignore[{code}] few calls")
    source = Source(text, "net.py")
    assert apply(source, check(source).findings, Settings()) == ()


def test_a_write_alone_is_for_those_who_try_it_out() -> None:
    alone = Source(COUNTER.partition("def calls")[0], "net.py")
    assert check(alone).findings == ()
    for settings in (Settings(preview=True), Settings(select=("GM503",)), Settings(select=("GM701",))):
        assert [f.code for f in check(alone, settings=settings).findings] == ["GM701"]


def test_settings_know_the_old_code() -> None:
    assert not Settings(ignore=("GM503",)).selects("GM701")
    assert Settings(select=("GM503",)).selects("GM701")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("self.steps += 1", "self.steps += 2"),
        ("self.steps += 1", "pass"),
        ("import torch\n", "import torch\n\n# a comment\n"),
        ("range(3)", "range(1)"),
        ("def calls", "def other():\n    pass\n\n\ndef calls"),
        ("        return x * self.steps", "        y = x\n        return y * self.steps"),
    ],
)
def test_edits_are_followed(before: str, after: str) -> None:
    """After an edit the findings are those of a check of the whole text."""
    analysis = IncrementalAnalysis("net.py")
    assert len(analysis.update(COUNTER).findings) == 1
    text = COUNTER.replace(before, after)
    found = analysis.update(text).findings
    assert found == check(Source(text, "net.py")).findings
    assert [f.related for f in found] == [f.related for f in check(Source(text, "net.py")).findings]


@pytest.mark.parametrize(
    ("program", "guarded"),
    [
        ("modes/frozen_halfway", ["2.12", "2.13"]),
        ("sites/lambda_argument_default", ["2.8", "2.12", "2.13"]),
        ("arguments/step_of_loop", versions()),
    ],
)
def test_what_a_version_does_not_guard_on_compiles_nothing_anew(program: str, guarded: list[str]) -> None:
    source = Source(PROGRAMS[program], "program.py")

    def said(version: str) -> bool:
        found = check(source, settings=Settings(torch_version=version)).findings
        return any(finding.effect == "recompiles" for finding in found)

    assert [version for version in versions() if said(version)] == list(guarded)


NEEDED = dict(
    line.split(": ", 1)
    for line in label.EXPECTED.with_name("needed_numbers.txt").read_text(encoding="utf-8").splitlines()
)


def needing(expression: str, compile: str = "torch.compile") -> str:
    """A program whose compiled function is given another number in each of four calls."""
    return f"""\
import torch
import torch.nn.functional as F


@{compile}
def step(x, image, p):
    return {expression}


def calls():
    for p in (0.1, 0.2, 0.3, 0.4):
        step(torch.rand(4, 6), torch.rand(1, 2, 8, 8), p)
"""


@pytest.mark.parametrize("name", NEEDED)
def test_numbers_that_torch_needs_are_compiled_each_time(name: str) -> None:
    (finding,) = check(Source(needing(NEEDED[name]), "program.py")).findings
    assert "3 times more in 4 calls" in finding.message


@pytest.mark.torch
def test_torch_needs_these_numbers(tmp_path: Path) -> None:
    program = (
        "import sys, json, torch\nfrom torch._dynamo.utils import clear_compilation_metrics, get_compilation_metrics\n"
        "counts = {}\nfor name, text in json.load(sys.stdin).items():\n"
        "    torch._dynamo.reset()\n    clear_compilation_metrics()\n    path = f'{len(counts)}.py'\n"
        "    open(path, 'w').write(text)\n    names = {}\n    exec(compile(text, path, 'exec'), names)\n"
        "    names['calls']()\n    counts[name] = len(get_compilation_metrics())\nprint(json.dumps(counts))\n"
    )
    compile = "torch.compile(backend='eager', dynamic=True)"
    texts = {name: needing(expression, compile) for name, expression in NEEDED.items()}
    command = [sys.executable, "-B", "-W", "ignore", "-c", program]
    ran = subprocess.run(
        command, cwd=tmp_path, input=json.dumps(texts), capture_output=True, text=True, timeout=300, check=True
    )
    assert json.loads(ran.stdout) == dict.fromkeys(NEEDED, 4)


def test_a_number_of_numpy_is_no_tensor_whose_branch_breaks() -> None:
    program = """\
import numpy as np
import torch


@torch.compile
def step(x, k):
    return x * k if k > 0.5 else x + k


def calls():
    for k in np.linspace(0.1, 1.0, 4):
        step(torch.ones(3), k)
"""
    assert check(Source(program, "program.py")).findings == ()
    (finding,) = check(
        Source(program.replace("(torch.ones(3), k)", "(torch.ones(3), float(k))"), "program.py")
    ).findings
    assert finding.code == "GM702"


BACKENDS = {
    "a lambda": ("lambda graph, inputs: graph.forward", "anew"),
    "a nested function": ("nested", "anew"),
    "a partial": ("functools.partial(plain, tag=1)", "anew"),
    "an object": ("Plain()", "anew"),
    "a function of the file": ("plain", "same"),
    "a method of one object": ("PLAIN.run", "same"),
    "an object of the file": ("PLAIN", "same"),
    "a name": ("'eager'", "same"),
    "an unknown value": ("choose()", "same"),
}


@pytest.mark.parametrize("name", BACKENDS)
def test_backends_are_told_apart_as_torch_does(name: str) -> None:
    given, which = BACKENDS[name]
    program = f"""\
import functools

import torch
from somewhere import choose


def plain(graph, inputs, tag=None):
    return graph.forward


class Plain:
    def __call__(self, graph, inputs):
        return graph.forward

    def run(self, graph, inputs):
        return graph.forward


PLAIN = Plain()


def double(x):
    return x * 2


def calls():
    for _ in range(3):

        def nested(graph, inputs):
            return graph.forward

        torch.compile(double, backend={given})(torch.ones(3))
"""
    found = check(Source(program, "program.py")).findings
    assert [f.code for f in found] == (["GM712"] if which == "anew" else [])


COMPILED = (
    "import torch\n\n\n@torch.compile\ndef f(x, m=None):\n    return x if m is None else x * 2\n\n\nx = torch.ones(3)\n"
)


def test_sizes_and_dtypes_may_both_vary() -> None:
    calls = (
        "for n in (3, 4, 5):\n    f(torch.ones(n, 2))\nf(torch.ones(6, 2, dtype=torch.int64))\nf(torch.ones(7, 2))\n"
    )
    found = check(Source(COMPILED.replace("return x if", "return x + 1 if") + calls, "a.py")).findings
    assert {f.code for f in found} == {"GM705", "GM710"}


@pytest.mark.parametrize(
    ("calls", "message", "advice"),
    [
        ("f(x)\nf(x, x)\n", "`m` is None in one call of `f` and a tensor in another", "one kind of value"),
        ("f(x, x)\nf(x, 2)\n", "`m` is a tensor in one call of `f` and 2 in another", "one kind of value"),
        ("f(x, 1)\nf(x, 2)\n", "`m` is 1 in one call of `f` and 2 in another", "0-d tensor"),
        (
            "for m in (torch.relu, torch.tanh):\n    f(x, m)\n",
            "`m` is `torch.relu` in one call of `f` and `torch.tanh` in another",
            "the same one in each call",
        ),
        (
            "def g():\n    for m in (None, x):\n        torch.compile(lambda y: y + 1 if m is None else y * m)(x)\n",
            "`m` is None in one `g.<lambda>` that is made and a tensor in another",
            "Compile one function outside of the loop",
        ),
        (
            "for m in (lambda y: y + 1, lambda y: -y):\n    f(x, m)\n",
            "`m` is a function in one call of `f` and another function in another",
            "the same one in each call",
        ),
        (
            "for n in (2, 4):\n    torch.compile(torch.nn.Linear(3, n))(x)\n",
            "is not the same in the modules of which",
            "Compile one module",
        ),
    ],
    ids=["none", "number", "numbers", "torch", "functions", "closure", "modules"],
)
def test_messages_say_what_varies(calls: str, message: str, advice: str) -> None:
    body = COMPILED.replace("x if m is None else x * 2", "m(x) if callable(m) else x + 1 if m is None else x * m")
    found = check(Source(body + calls, "a.py")).findings
    (finding,) = [f for f in found if f.code in ("GM702", "GM709")]
    assert message in finding.message
    assert advice in finding.advice


def test_a_size_of_one_is_no_size_that_may_be_any() -> None:
    calls = "torch._dynamo.mark_dynamic(x, 0)\nf(x)\nf(torch.ones(1))\n"
    (finding,) = check(Source(COMPILED.replace("return x if", "return x * len(x) if") + calls, "a.py")).findings
    assert "`x` has other sizes in another call of `f` (2 or more, then 1 or none)" in finding.message
    assert finding.evidence[1] == "the guard that fails: 2 <= x.size()[0]"


def test_indices_are_evaluated_once() -> None:
    driver = """\
class Batches:
    n = 0

    def step(self):
        self.n += 1
        return self.n


b = Batches()
for _ in range(2):
    {}
    f(x, b.n)
"""
    for taken in ("y = x[b.step()]", "x[b.step()] = 0", "y = x[b.step():]"):
        (finding,) = check(Source(COMPILED.replace("x if", "x + m if") + driver.format(taken), "a.py")).findings
        assert "`m` is 1 in one call of `f` and 2 in another" in finding.message


def test_registered_modules_are_called_in_a_history() -> None:
    files = {
        "registry.py": "MODELS = {}\ndef register(cls):\n    MODELS['net'] = cls\n    return cls\n",
        "nets.py": "import torch\nfrom registry import register\n@register\nclass Net(torch.nn.Module):\n"
        "    def forward(self, x, n):\n        return x + n\n",
        "main.py": "import torch\nimport nets\nfrom registry import MODELS\nnet = torch.compile(MODELS['net']())\n"
        "for n in (2, 4):\n    net(torch.ones(3), n)\n",
    }
    result = check(Source(files["main.py"], "main.py"), Project(Folder(files)))
    found = [*result.findings, *(f for its in result.elsewhere.values() for f in its)]
    assert [f.code for f in found] == ["GM702"]


def test_names_of_unknown_modules_may_stand_for_tensors() -> None:
    calls = "import lib\nfrom lib import mean\nf(x, mean)\nf(x, lib.std)\nf(x, undefined)\n"
    assert not [f for f in check(Source(COMPILED + calls, "a.py")).findings if f.effect == "recompiles"]


ELSEWHERE = """\
import torch
from lib import Net, make


def calls({parameter}):
    net = torch.compile({given}{options})
    for n in {sizes}:
        net({name}torch.ones(n, 4), n)
"""


@pytest.mark.parametrize(
    ("given", "parameter", "options", "sizes", "found"),
    [
        ("Net(3)", "", "", "(8, 16)", True),
        ("make('net')", "", "", "(8, 16)", True),
        ("make", "", ", mode='max-autotune'", "(8, 16)", True),
        ("model", "model", "", "(8, 16)", True),
        ("model", "model", ", dynamic=True", "(8, 16)", False),
        ("model", "model", "", "(8, 8)", False),
    ],
)
@pytest.mark.parametrize("name", ["", "x="])
def test_code_without_source_is_compiled_for_its_tensors_alone(
    given: str, parameter: str, options: str, sizes: str, found: bool, name: str
) -> None:
    """Whether it computes with the number that it is given, too, is not known."""
    text = ELSEWHERE.format(given=given, parameter=parameter, options=options, sizes=sizes, name=name)
    if name:
        text = text.replace(", n)", ", step=n)")
    assert [f.code for f in check(Source(text, "a.py")).findings] == ["GM705"] * found


def test_two_models_of_one_name_are_two_findings() -> None:
    one = ELSEWHERE.format(given="model", parameter="model", options="", sizes="(8, 16)", name="")
    text = one + one.partition("\n\n\n")[2].replace("def calls", "\n\ndef more")
    assert [f.code for f in check(Source(text, "a.py")).findings] == ["GM705", "GM705"]


def test_a_large_package_leaves_its_driver_steps(tmp_path: Path) -> None:
    """What the package does when it is imported, and in one call, has steps of its own."""
    slow = "".join(f"x{i} = [n * {i} for n in range(60)]\n" for i in range(400))
    (tmp_path / "lib.py").write_text(
        "import torch\n" + slow + "class Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        + "".join(f"        {line}\n" for line in slow.splitlines())
        + "    def forward(self, x):\n        return x * 2\n"
    )  # fmt: skip
    driver = tmp_path / "drive.py"
    driver.write_text(
        "import torch\nfrom lib import Net\n\nnet = torch.compile(Net())\n"
        "for n in (8, 16):\n    net(torch.ones(n, 4))\n"
    )
    run = subprocess.run(
        [sys.executable, "-m", "graphmend", "check", "--no-cache", str(driver)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "GM705 varying-shape: `x` has other sizes in another call of `Net.forward`" in run.stdout


def test_numbers_that_are_drawn_are_not_made_up() -> None:
    text = PROGRAMS["loops/mixup_with_python_lambda"]
    (finding,) = check(Source(text, "a.py")).findings
    assert "`lam` is a random number in one call of `mixup` and another one in another" in finding.message
    assert finding.evidence[1] == "the guard that fails: lam == a random number"

"""The capture switches are used where they do what they are there for; else Dynamo stays as it is."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
switches = pytest.importorskip("graphmend.runtime.switches")

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(switches.version() < switches.OLDEST, reason="they are measured with newer versions of torch"),
]

PROGRAM = """
import contextlib, json
from unittest import mock
import torch, torch._dynamo
from torch._dynamo import config, symbolic_convert, utils
from torch._dynamo.convert_frame import ConvertFrame
from torch._dynamo.variables import builder
from torch._dynamo.variables.tensor import TensorVariable
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from graphmend.runtime import switches
from graphmend.runtime.specialised import known_values

OWNERS = [(ConvertFrame, "__call__"), (ShapeEnv, "evaluate_expr"), (TensorVariable, "method_tolist"),
          (builder, "get_fake_value")]

def state():
    kinds = symbolic_convert.InstructionTranslatorBase, symbolic_convert.InstructionTranslator
    functions = [getattr(owner, name, None) for owner, name in OWNERS]
    return [list(kind.dispatch_table) for kind in kinds], functions, dict(utils.counters)

def tried(change):
    with change:
        before = state()
        return [switches.install(), state() == before]

@contextlib.contextmanager
def without(owner, name):
    kept = getattr(owner, name)
    delattr(owner, name)
    yield
    setattr(owner, name, kept)

answers = {}
for name in ("_evaluating", "_listing", "_computing", "_jumping"):
    answers[name] = tried(mock.patch.object(known_values, name, lambda function, keeps=None: function))
answers["a function is gone"] = tried(without(TensorVariable, "method_tolist"))
answers["it raises"] = tried(mock.patch.object(known_values, "_learn", lambda *_: 1 / 0))
before = state()
answers["as it is"] = [switches.install(), state() != before and state()[2] == before[2]]
before = state()
answers["twice"] = [switches.install(), state() == before]
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers() -> dict[str, list[bool]]:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    found: dict[str, list[bool]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_they_are_used_where_they_work(answers: dict[str, list[bool]]) -> None:
    assert answers["as it is"] == answers["twice"] == [True, True]


def test_where_a_hook_is_broken_dynamo_stays_as_it_is(answers: dict[str, list[bool]]) -> None:
    broken = {name: answer for name, answer in answers.items() if name not in ("as it is", "twice")}
    assert len(broken) == 6
    assert all(answer == [False, True] for answer in broken.values()), broken

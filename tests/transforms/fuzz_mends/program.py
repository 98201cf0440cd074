"""A whole program: a file with a compiled `case`, and its inputs."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, replace

from fuzz_mends import (
    grammar_choices,
    grammar_control,
    grammar_effects,
    grammar_forms,
    grammar_held,
    grammar_idioms,
    grammar_statements,
    grammar_tests,
    grammar_values,
    inputs,
)
from fuzz_mends.grammar import Dead, Rules, Writer
from fuzz_mends.scope import Scope

RULES: Rules = {
    **grammar_values.RULES,
    **grammar_tests.RULES,
    **grammar_statements.RULES,
    **grammar_effects.RULES,
    **grammar_control.RULES,
    **grammar_idioms.RULES,
    **grammar_choices.RULES,
    **grammar_forms.RULES,
    **grammar_held.RULES,
}

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\nfrom torch import Tensor\n"

_MODULE = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.lin2 = nn.Linear(4, 4)
        self.gate = nn.Linear(4, 3)
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.act = nn.ReLU()
        self.inplace_act = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(0.5)
        self.weight = nn.Parameter(torch.tensor([0.5, -1.0, 2.0, 1.0]))
        self.register_buffer("avg", torch.ones(4))
        self.register_buffer("spare", torch.zeros(4))
        self.register_buffer("scale", torch.tensor(0.5))
        self.register_buffer("hits", torch.zeros((), dtype=torch.int64))
        self.last = torch.zeros(4)
        self.steps = 0
        self.total = 0.5
        self.limit = 3.0
"""
_PROPERTY = """\
    @property
    def level(self):
        self.steps += 1
        return 0.5
"""

_WATCHED = """\
import contextlib


@contextlib.contextmanager
def watched():
    try:
        yield
    finally:
        print('watched')
"""

#: what stands above, by the feature that lets rules use it, empty where all may, and by what shows that one did
_PARTS = {
    ("box", "box."): "class Box:\n    pass\n\n\nbox = Box()\nbox.h = torch.zeros(4)\n",
    ("logger", "logger."): 'import logging\n\nlogger = logging.getLogger("fuzz")\n',
    ("store", "STORE"): "STORE = {'a': 0, 'b': 1}\n",
    ("store", "TRACE"): "TRACE = []\n",
    ("once", "warn_once("): "import functools\n\n\n"
    "@functools.lru_cache(None)\ndef warn_once(message):\n    print('once', message)\n",
    ("once", "note("): "def note(value):\n    print('note', value)\n",
    ("adapter", "adapter."): 'import logging\n\nadapter = logging.LoggerAdapter(logging.getLogger("fuzz"), {"a": 1})\n',
    ("unknown", "unknown("): "from math import floor as unknown\n",
    ("", "SCALES"): "SCALES = {'a': 2.0, 'b': 0.5}\n",
    ("", "DEFAULTS"): "import collections\n\nDEFAULTS = collections.defaultdict(lambda: 2.0)\n",
    ("", "watched("): _WATCHED,
    ("", "measured("): "def measured(x: Tensor):\n    return x.sum().item()\n",
    ("", "elapsed("): "import time\n\n\ndef elapsed(began):\n    return time.perf_counter() - began\n",
}


#: what puts another function in the place of `helper`
_REPLACED = (
    "globals()['helper'] = torch.neg\n",
    "import sys\n\nsetattr(sys.modules[__name__], 'helper', lambda x: x * 2)\n",
    "def helper(x):\n    return x + 1\n",
)

_ATTRIBUTE = re.compile(r"(?:self\.|register_buffer\(\")((?!register)\w+)")


@dataclass(frozen=True)
class Program:
    """A text, and the texts of the tuples that `case` is called with."""

    seed: str
    text: str
    rows: tuple[str, ...]

    @property
    def inputs(self) -> str:
        return f"[{', '.join(self.rows)}]"

    def changed(self, text: str | None = None, rows: tuple[str, ...] | None = None) -> Program:
        return replace(self, text=self.text if text is None else text, rows=self.rows if rows is None else rows)


def generate(seed: str) -> Program:
    """The program of a seed; the same one each time."""
    writer = Writer(seed, RULES)
    writer.features.add("rank2" if writer.maybe(0.35) else "rank1")
    for part, probability in (
        ("box", 0.2),
        ("logger", 0.3),
        ("store", 0.15),
        ("once", 0.1),
        ("adapter", 0.05),
        ("property", 0.05),
    ):
        if writer.maybe(probability):
            writer.features.add(part)
    module = writer.maybe(0.4)
    parameters = _parameters(writer)
    parts = []
    if writer.maybe(0.25):
        parts.append(_helper(writer))
    signature = ", ".join(name + _annotation(writer, kind) for name, kind in parameters)
    names = ", ".join(name for name, _ in parameters)
    if module:
        writer.features.add("module")
        body = _body(writer, parameters)
        parts.append(_net(writer, signature, body))
        parts.append(_compiled_module(writer, signature, names))
    else:
        body = _body(writer, parameters)
        parts.append(_compiled_function(writer, signature, body, names))
    if "helper(" in parts[-1] and writer.maybe(0.08):
        parts.append(writer.one(_REPLACED))
    rows = inputs.rows(writer, parameters)
    if writer.maybe(0.02):  # names that mends bring along
        parts.insert(
            0, writer.one(["graphmend = 3\n", "def graphmend(x):\n    return x\n", "condition = stopped = None\n"])
        )
    said = "".join(parts)
    parts = [HEAD, *(text for (_, mark), text in _PARTS.items() if mark in said), *parts]
    imports = "".join(f"import {name}\n" for name in sorted(writer.imports))
    return Program(seed, imports + "\n\n".join(part.strip("\n") + "\n" for part in parts), tuple(rows))


def _parameters(writer: Writer) -> list[tuple[str, str]]:
    found = [("x", "tensor")]
    for name, kind, probability in (
        ("o", "tensor", 0.3),
        ("mask", "mask", 0.15),
        ("k", "index", 0.2),
        ("n", "count", 0.1),
        ("flag", "flag", 0.1),
        ("rate", "number", 0.08),
    ):
        if writer.maybe(probability):
            found.append((name, kind))
            if kind in ("index", "flag"):
                writer.features.add(kind)
    return found


def _annotation(writer: Writer, kind: str) -> str:
    known = {"count": ": int", "flag": ": bool", "number": ": float"}.get(kind, ": Tensor")
    return known if writer.maybe(0.93) else ""


def _start(writer: Writer, parameters: list[tuple[str, str]], budget: int) -> None:
    writer.scope = Scope({name: kind for name, kind in parameters if kind != "index"})
    writer.budget = budget


def _helper(writer: Writer) -> str:
    """A function that is called from the compiled one; defined before `case`, so it can't call it."""
    _start(writer, [("x", "tensor")], 4)
    body = writer.statements(writer.one([1, 2, 2]), "breaking")
    if not body.rpartition("\n")[2].startswith("return"):
        body += "\nreturn " + writer.make("result0")
    writer.features.add("helper")
    return f"def helper(x{_annotation(writer, 'tensor')}):\n{textwrap.indent(body, '    ')}\n"


def _body(writer: Writer, parameters: list[tuple[str, str]]) -> str:
    """Statements, of which some break for certain, and what is returned."""
    _start(writer, parameters, writer.one([5, 7, 9, 12]))
    lines = []
    if writer.maybe(0.7):
        lines.append(writer.statement("prologue"))
    kinds = ["breaking", *(writer.weighted([(5, "statement"), (3, "breaking"), (3, "plain")]) for _ in range(4))]
    kinds = kinds[: writer.weighted([(2, 1), (4, 2), (4, 3), (2, 4), (1, 5)])]
    writer.chance.shuffle(kinds)
    for kind in kinds:
        lines.append(writer.statements(1, kind))
    if writer.maybe(0.35):  # writes behind a break show who shares memory
        lines.append(writer.statements(1, "in_place"))
    body = "\n".join(lines)
    if not lines[-1].startswith(("return", "raise")):
        body += "\nreturn " + _returned(writer)
    around = writer.weighted(
        [(64, ""), (28, "with torch.no_grad():"), (1, "with torch.inference_mode():"), (2, "try:")]
    )
    if not around:
        return body
    wrapped = f"{around}\n{textwrap.indent(body, '    ')}"
    return wrapped + ("\nexcept (ValueError, RuntimeError):\n    return x" if around == "try:" else "")


def _returned(writer: Writer) -> str:
    names = writer.scope.of("tensor", "scalar", "number", "count", "flag", "mask", "part", "list", "maybe", "label")
    if writer.maybe(0.6) and len(names) > 1:
        shown = writer.chance.sample(names, min(len(names), 4))
        return ", ".join(shown)
    try:
        return writer.make("result")
    except Dead:
        return "x"


def _net(writer: Writer, signature: str, body: str) -> str:
    decorated = writer.weighted([(12, ""), (2, "    @torch.compile\n"), (1, "    @torch.no_grad()\n")])
    used = [
        line
        for line in _MODULE.splitlines()
        if (name := _ATTRIBUTE.search(line)) is None or name[1] in (body + _PROPERTY if "self.level" in body else body)
    ]
    init = "\n".join(used)
    asked = f"\n{_PROPERTY}" if "self.level" in body else ""
    return f"{init}\n{asked}\n{decorated}    def forward(self, {signature}):\n{textwrap.indent(body, ' ' * 8)}\n"


def _compiled_module(writer: Writer, signature: str, names: str) -> str:
    training = writer.one(["", ".eval()"])
    if writer.maybe(0.3):
        return f"mod = torch.compile(Net(){training})\n\n\ndef case({signature}):\n    return mod({names})\n"
    return f"mod = Net(){training}\n\n\n@torch.compile\ndef case({signature}):\n    return mod({names})\n"


def _compiled_function(writer: Writer, signature: str, body: str, names: str) -> str:
    text = f"def case({signature}):\n{textwrap.indent(body, '    ')}\n"
    if writer.maybe(0.06):
        return f"{text.replace('def case', 'def inner', 1)}\n\ncase = torch.compile(inner)\n"
    return f"@torch.compile\n{writer.weighted([(15, ''), (1, '@torch.no_grad()' + chr(10))])}{text}"


RULES["prologue"] = [
    (6, "<new:tensor> = x * 1"),
    (3, "<new:tensor> = <tensor>"),
    (2, "<new:tensor>, <new:mask> = <tensor>, <mask>"),
    (2, "<new:scalar> = <scalar>"),
    (1, "<new:tensor> = x.clone()"),
]
RULES["result0"] = [(1, "<old:tensor>"), (1, "<tensor>")]

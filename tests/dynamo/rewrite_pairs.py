# ruff: noqa: E501 - a pair is read as one piece
"""Rewrites made by hand, as texts before and after: wrong ones, each with a kind of difference that must be seen, and
right ones, each with the differences that it names.
"""

from __future__ import annotations

import textwrap
from typing import NamedTuple

HEAD = """\
import logging, random, warnings
from dataclasses import dataclass
import numpy
import torch
import torch.nn.functional as F
from torch import nn
logger = logging.getLogger("pairs")
logger.setLevel(logging.INFO)
logger.addHandler(logging.NullHandler())
logger.propagate = False
"""


class Pair(NamedTuple):
    """`kind` is what must be among the differences of a wrong one; `named` is what a right one may differ in."""

    name: str
    before: str
    after: str
    kind: str = ""
    named: tuple[str, ...] = ()


def _net(body: str, old: str, new: str, init: str = "", call: str = "torch.randn(3, 4)") -> tuple[str, str]:
    """A module with one layer; `old` in the body of its `forward` becomes `new`."""
    assert old in body, old
    parameters = body.partition("\n")[0]
    text = (
        f"# graphmend: example Net()({call})\n"
        "class Net(nn.Module):\n"
        "    calls = 0\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.layer = nn.Linear(4, 4)\n"
        f"{textwrap.indent(init, ' ' * 8)}"
        f"    def forward(self, {parameters}):\n"
    )
    lines = body.partition("\n")[2]
    return tuple(  # type: ignore[return-value]
        HEAD + text + textwrap.indent(part, " " * 8) for part in (lines, lines.replace(old, new))
    )


def _function(body: str, old: str, new: str, call: str, before: str = "") -> tuple[str, str]:
    """A function, the same way; `before` is text of the module."""
    assert old in body, old
    parameters, _, lines = body.partition("\n")
    text = f"{HEAD}{before}# graphmend: example f({call})\n@torch.compile\ndef f({parameters}):\n"
    return text + textwrap.indent(lines, "    "), text + textwrap.indent(lines.replace(old, new), "    ")


def wrong(kind: str, name: str, texts: tuple[str, str]) -> Pair:
    return Pair(name, *texts, kind=kind)


def right(name: str, texts: tuple[str, str], *named: str) -> Pair:
    return Pair(name, *texts, named=named)


PLAIN = "torch.randn(3, 4)"
BOOLEAN = "torch.randn(3, 4), torch.tensor([[True], [True], [False]])"

WRONG = (
    # what the module is afterwards
    wrong("state", "a parameter is not clamped", _net(
        "x\nwith torch.no_grad():\n    self.layer.weight.clamp_(-0.1, 0.1)\nreturn x.relu() + 1\n",
        "    self.layer.weight.clamp_(-0.1, 0.1)", "    pass")),
    wrong("state", "a buffer is not counted", _net(
        "x\nself.count += 1\nreturn self.layer(x)\n", "self.count += 1\n", "",
        'self.register_buffer("count", torch.zeros(()))\n')),
    wrong("aliasing", "a buffer is rebound, not written", _net(
        "x\nself.mean.mul_(0.5).add_(1)\nreturn self.layer(x)\n",
        "self.mean.mul_(0.5).add_(1)", "self.mean = self.mean * 0.5 + 1",
        'self.register_buffer("mean", torch.zeros(4))\n')),
    wrong("state", "a parameter is not registered", _net(
        'x\nif not hasattr(self, "scale"):\n    self.scale = nn.Parameter(torch.ones(4))\nreturn self.layer(x)\n',
        "nn.Parameter(torch.ones(4))", "torch.ones(4, requires_grad=True)")),
    wrong("state", "a buffer goes into the checkpoint", _net(
        'x\nself.register_buffer("seen", torch.zeros(2), persistent=False)\nreturn self.layer(x)\n',
        "persistent=False", "persistent=True")),
    wrong("flags", "a part stays in training mode", _net(
        "x\nself.layer.eval()\nreturn self.layer(x)\n", "self.layer.eval()\n", "")),
    wrong("flags", "a part is not frozen", _net(
        "x\ny = self.layer(x)\nself.layer.requires_grad_(False)\nreturn y\n",
        "self.layer.requires_grad_(False)\n", "")),
    wrong("state", "a plain attribute is not counted", _net(
        "x\nself.steps += 1\nreturn self.layer(x)\n", "self.steps += 1\n", "", "self.steps = 0\n")),
    wrong("state", "an attribute holds the later value", _net(
        "x\ny = self.layer(x)\nself.h = y.detach()\ny = y.detach() * 2\nreturn y\n",
        "self.h = y.detach()\ny = y.detach() * 2\n", "y = y.detach() * 2\nself.h = y\n")),
    wrong("state", "an attribute's list stays empty", _net(
        "x\ny = self.layer(x)\nself.log.append(y.shape[0])\nreturn y\n",
        "self.log.append(y.shape[0])", "[*self.log, y.shape[0]]", "self.log = []\n")),
    wrong("state", "another part is put in", _net(
        "x\ny = self.layer(x)\nself.act = nn.ReLU()\nreturn y\n", "nn.ReLU()", "nn.GELU()")),
    wrong("state", "a hook is not registered", _net(
        "x\ny = self.layer(x)\nself.layer.register_forward_hook(print)\nreturn y\n",
        "self.layer.register_forward_hook(print)\n", "")),
    wrong("state", "a gradient is not accumulated", _net(
        "x\ny = self.layer(x).sum()\ny.backward()\nreturn y.detach()\n", "y.backward()\n", "")),
    wrong("state", "a class attribute is not counted", _net(
        "x\nNet.calls += 1\nreturn self.layer(x)\n", "Net.calls += 1\n", "")),
    wrong("state", "a global is not counted", _function(
        "x\nglobal COUNT\nCOUNT += 1\nreturn x * 2\n", "COUNT += 1", "pass", PLAIN, "COUNT = 0\n")),
    wrong("state", "a global tensor is not written", _function(
        "x\nSEEN.add_(x.sum(0))\nreturn x * 2\n", "SEEN.add_(x.sum(0))", "SEEN.sum()", PLAIN,
        "SEEN = torch.zeros(4)\n")),
    wrong("state", "a global list stays empty", _function(
        "x\nHISTORY.append(x.shape[0])\nreturn x * 2\n", "HISTORY.append(x.shape[0])", "pass", PLAIN,
        "HISTORY = []\n")),
    # what the arguments are afterwards
    wrong("argument-state", "an argument is not written", _function(
        "x\nx.add_(1)\nreturn x * 2\n", "x.add_(1)", "x = x + 1", PLAIN)),
    wrong("argument-state", "an argument is written after all", _net(
        "x\nx = x + 1\nreturn self.layer(x)\n", "x = x + 1", "x += 1")),
    wrong("argument-state", "a list does not grow", _net(
        "x, cache\ny = self.layer(x)\ncache.append(y)\nreturn y\n", "cache.append(y)", "cache = [*cache, y]",
        call="torch.randn(3, 4), []")),
    wrong("argument-state", "a dictionary lacks a key", _net(
        'x, out\ny = self.layer(x)\nout["size"] = 3\nreturn y\n', 'out["size"] = 3\n', "",
        call='torch.randn(3, 4), {"a": 1}')),
    wrong("argument-state", "no step of the optimiser", _function(
        "net, opt, x\nloss = net(x).sum()\nloss.backward()\nopt.step()\nopt.zero_grad()\nreturn loss.detach()\n",
        "opt.step()\n", "", "*made(), torch.ones(2, 4)",
        "def made():\n    net = nn.Linear(4, 1)\n    return net, torch.optim.SGD(net.parameters(), 0.1)\n")),
    wrong("flags", "an argument does not want gradients", _function(
        "x\nx.requires_grad_()\nreturn x.detach() * 2\n", "x.requires_grad_()\n", "", PLAIN)),
    # what a result is besides its values
    wrong("requires-grad", "the result is detached", _net(
        "x\nreturn self.layer(x)\n", "self.layer(x)", "self.layer(x).detach()")),
    wrong("requires-grad", "the result is no leaf", _function(
        "x\nreturn torch.zeros(4, requires_grad=True), x * 2\n", "requires_grad=True)", "requires_grad=True) * 1",
        PLAIN)),
    wrong("strides", "the result is contiguous", _net(
        "x\nreturn self.layer(x).t()\n", ".t()", ".t().contiguous()")),
    wrong("strides", "the result begins elsewhere in its memory", _net(
        "x\ny = self.layer(x)\nreturn y[1:]\n", "y[1:]", "y[1:].clone()")),
    wrong("dtype", "the result is wider", _net(
        "x\nreturn self.layer(x).detach().sum()\n", ".sum()", ".sum().double()")),
    wrong("shape", "the result has another dimension", _net(
        "x\nreturn self.layer(x).sum(0)\n", "sum(0)", "sum(0, keepdim=True)")),
    # who shares memory
    wrong("aliasing", "a view of the argument is a copy", _function(
        "x\nreturn x.view(-1)\n", "x.view(-1)", "x.clone().view(-1)", PLAIN)),
    wrong("aliasing", "the argument is returned as a copy", _function(
        "x\nx = x.contiguous()\nreturn x\n", "x.contiguous()", "x.clone()", PLAIN)),
    wrong("aliasing", "a buffer is returned as a copy", _net(
        "x\nreturn self.table, self.layer(x)\n", "self.table", "self.table.clone()",
        'self.register_buffer("table", torch.zeros(4))\n')),
    wrong("aliasing", "one result does not follow the other", _net(
        "x\ny = self.layer(x)\nreturn y, y[0]\n", "y[0]", "y.clone()[0]")),
    wrong("aliasing", "one list stands for two", _net(
        "x\ny = self.layer(x)\na = []\nreturn y, a, []\n", "a, []", "a, a")),
    wrong("aliasing", "an attribute follows the result", _net(
        "x\ny = self.layer(x).detach()\nself.last = y.clone()\nreturn y\n", "y.clone()", "y")),
    wrong("aliasing", "the result is not in shared memory", _net(
        "x\nreturn self.layer(x).detach().share_memory_()\n", ".share_memory_()", "")),
    wrong("value", "a scalar follows what is written later", _function(
        "x\ns = x[0, 0].item()\nx[0, 0] = 5.0\nreturn x + s\n", ".item()", "", PLAIN)),
    # random generators
    wrong("random", "a draw less", _net(
        "x\nn = torch.rand(3)\nreturn self.layer(x)\n", "n = torch.rand(3)\n", "")),
    wrong("random", "a draw of Python's less", _net(
        "x\nif random.random() > 2:\n    x = x + 1\nreturn self.layer(x)\n", "random.random() > 2", "False")),
    wrong("random", "a draw of NumPy's less", _net(
        "x\nif numpy.random.rand() > 2:\n    x = x + 1\nreturn self.layer(x)\n", "numpy.random.rand() > 2", "False")),
    # gradients
    wrong("gradients", "a gradient is lost", _net(
        "x\nx = self.layer(x)\nreturn x * 2\n", "x * 2", "x + x.detach()")),
    wrong("gradients", "the gradient of an input is lost", _net(
        "x\nreturn self.layer(x)\n", "self.layer(x)", "self.layer(x.detach())")),
    wrong("zero-gradients", "zeros in place of no gradient", _net(
        "x\nif x.shape[0] > 2:\n    return self.layer(x)\nreturn self.other(x)\n", "if x.shape[0] > 2:\n    return self.layer(x)\nreturn self.other(x)",
        "big = torch.tensor(x.shape[0] > 2)\nreturn torch.where(big, self.layer(x), self.other(x))",
        "self.other = nn.Linear(4, 4)\n")),
    # exceptions and output
    wrong("exception", "another exception", _function(
        "x\nif x.isnan().any():\n    raise ValueError('no number')\nreturn x * 2\n", "ValueError", "RuntimeError", PLAIN)),
    wrong("exception", "no exception", _function(
        "x, n\nassert n > 2\nreturn x * n\n", "assert n > 2\n", "", "torch.randn(3, 4), 3")),
    wrong("output-text", "other text", _net(
        "x\nprint('size', x.shape[0])\nreturn self.layer(x)\n", "size", "shape")),
    wrong("output-text", "a warning is lost", _net(
        "x\nwarnings.warn('old')\nreturn self.layer(x)\n", "warnings.warn('old')\n", "")),
    wrong("output-text", "a record that no handler shows is lost", _net(
        "x\nlogger.info('step')\nreturn self.layer(x)\n", "logger.info('step')\n", "")),
    wrong("output-order", "lines change places", _net(
        "x\nprint('one')\nprint('two')\nreturn self.layer(x)\n", "print('one')\nprint('two')",
        "print('two')\nprint('one')")),
    # what only other inputs show
    wrong("value", "an index that comes twice", _function(
        "out, index, x\nout.index_put_((index,), x, accumulate=True)\nreturn out * 1\n", ", accumulate=True", "",
        "torch.zeros(4), torch.arange(4), torch.ones(4)")),
    wrong("shape", "a number is written down", _net(
        "x, n\nreturn self.layer(x).topk(n.item()).values\n", "n.item()", "2", call="torch.randn(3, 4), torch.tensor(2)")),
    wrong("shape", "a Python number is written down", _net(
        "x, n\nreturn self.layer(x).topk(n).values\n", "topk(n)", "topk(2)", call="torch.randn(3, 4), 2")),
    wrong("value", "the order of positions is taken for granted", _function(
        "x, index\nreturn x[index] * 2\n", "x[index]", "x", "torch.randn(3, 4), torch.arange(3)")),
    wrong("value", "a mean over all elements", _function(
        "x, m\nreturn x * (x * m).sum() / m.sum()\n", "(x * m).sum() / m.sum()", "x.sum() / 3",
        "torch.randn(3, 4), torch.ones(3, 1, dtype=torch.bool)")),
    wrong("value", "zero times infinity", _function(
        "x\nreturn torch.where(x > 0, x, 0.0).sum()\n", "torch.where(x > 0, x, 0.0)", "(x * (x > 0))", PLAIN)),
)  # fmt: skip

RIGHT = (
    right("where", _net(
        "x\nx = self.layer(x)\nif x.sum() > 0:\n    x = x * 2\nreturn x\n",
        "if x.sum() > 0:\n    x = x * 2\n", "x = torch.where(x.sum() > 0, x * 2, x)\n")),
    right("where, in training mode", _net(
        "x\nx = self.drop(self.norm(self.layer(x)))\nif x.sum() > 0:\n    x = x * 2\nreturn x\n",
        "if x.sum() > 0:\n    x = x * 2\n", "x = torch.where(x.sum() > 0, x * 2, x)\n",
        "self.norm = nn.BatchNorm1d(4)\nself.drop = nn.Dropout(0.5)\n")),
    right("a kept scalar", _net(
        "x\nx = self.layer(x)\ns = x.sum().item()\nreturn x * s\n", ".item()", ".detach()")),
    right("a counter and a list stay", _net(
        "x\nself.steps += 1\nself.log.append(x.shape[0])\nx = self.layer(x)\nif x.sum() > 0:\n    x = x * 2\nreturn x\n",
        "if x.sum() > 0:\n    x = x * 2\n", "x = torch.where(x.sum() > 0, x * 2, x)\n", "self.steps = 0\nself.log = []\n")),
    right("a buffer is written in place, in other words", _net(
        "x\nself.mean.mul_(0.5).add_(x.mean(0).detach())\nreturn self.layer(x) + self.mean\n",
        "self.mean.mul_(0.5).add_(x.mean(0).detach())",
        "self.mean.mul_(0.5)\nself.mean += x.detach().mean(0)",
        'self.register_buffer("mean", torch.zeros(4))\n')),
    right("an argument is written in place, in other words", _function(
        "x\nx.add_(1)\nreturn x\n", "x.add_(1)", "x += 1", PLAIN)),
    right("a list and a dictionary are filled", _net(
        'x, cache, out\ny = self.layer(x)\ncache.append(y)\nout["size"] = 3\nreturn y\n', 'cache.append(y)\nout["size"] = 3',
        'cache += [y]\nout.update(size=3)', call="torch.randn(3, 4), [], {}")),
    right("a step of the optimiser", _function(
        "net, opt, x\nloss = net(x).sum()\nloss.backward()\nopt.step()\nreturn loss.detach()\n",
        "loss = net(x).sum()\n", "loss = torch.sum(net(x))\n", "*made(), torch.ones(2, 4)",
        "def made():\n    net = nn.Linear(4, 1)\n    return net, torch.optim.Adam(net.parameters(), 0.1)\n")),
    right("globals, and a new one", _function(
        "x\nglobal COUNT\nCOUNT += 1\nHISTORY.append(x.shape[0])\nSEEN.add_(x.sum(0))\nreturn x * 2\n", "x * 2", "twice(x)", PLAIN,
        "COUNT = 0\nHISTORY = []\nSEEN = torch.zeros(4)\nTWO = 2\ndef twice(x):\n    return x * TWO\n")),
    right("draws in the same order", _net(
        "x\nnoise = torch.rand(3, 4)\nif random.random() > 0.5:\n    x = x + noise\nreturn self.layer(x)\n",
        "x = x + noise", "x = torch.add(x, noise)")),
    right("a mask, filled", _net(
        "x, m\nx = self.layer(x)\nif m.any():\n    x = x.masked_fill(m, 0.0)\nreturn x\n",
        "if m.any():\n    x = x.masked_fill(m, 0.0)\n", "x = x.masked_fill(m, 0.0)\n", call=BOOLEAN)),
    right("an index made a tensor", _net(
        "x, k\nx = self.layer(x)\nreturn [x, x * 2, x * 3][k.item()] + 1\n", "[x, x * 2, x * 3][k.item()]",
        "torch.stack([x, x * 2, x * 3])[k]", call="torch.randn(3, 4), torch.tensor(1)")),
    right("cond", _net(
        "x\nx = self.layer(x)\nif x.sum() > 0:\n    x = x * 2\nelse:\n    x = x - 1\nreturn x\n",
        "if x.sum() > 0:\n    x = x * 2\nelse:\n    x = x - 1\n",
        "x = torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))\n")),
    right("an object as result", _net(
        "x\nx = self.layer(x)\nif x.sum() > 0:\n    x = x * 2\nreturn {'a': x, 'b': (x + 1, [x.shape, 'text'])}\n",
        "if x.sum() > 0:\n    x = x * 2\n", "x = torch.where(x.sum() > 0, x * 2, x)\n")),
    right("a view of the argument stays one", _function(
        "x\ny = x.view(-1)\nreturn y, y[0:2]\n", "x.view(-1)", "x.reshape(-1)", PLAIN)),
    right("text in the same order", _net(
        "x\nprint('one')\nlogger.info('two %d', x.shape[0])\nwarnings.warn('three')\nreturn self.layer(x)\n",
        "print('one')", "print('o' + 'ne')")),
    right("an exception with other words", _function(
        "x\nif x.isnan().any():\n    raise ValueError('no number')\nreturn x * 2\n", "no number", "not a number", PLAIN)),
    # these say what differs
    right("rounding", _function(
        "x\nreturn x.sum(0).sum() / 3\n", "x.sum(0).sum()", "x.sum()", "torch.randn(300, 77)"), "rounding"),
    right("another exception, named", _function(
        "x\nif x.isnan().any():\n    raise ValueError('no number')\nreturn x * 2\n", "ValueError", "RuntimeError", PLAIN),
        "exception"),
    right("zeros in place of no gradient, named", _net(
        "x\nx = self.layer(x)\nif x.sum() > 0:\n    return x * self.a\nreturn x * self.b\n",
        "if x.sum() > 0:\n    return x * self.a\nreturn x * self.b\n",
        "return torch.where(x.sum() > 0, x * self.a, x * self.b)\n",
        "self.a = nn.Parameter(torch.ones(4))\nself.b = nn.Parameter(torch.ones(4))\n"), "zero-gradients"),
    right("a copy, named", _function(
        "x\nif x.sum() > 1e6:\n    x = x * 2\nreturn x\n", "if x.sum() > 1e6:\n    x = x * 2\n",
        "x = torch.where(x.sum() > 1e6, x * 2, x)\n", PLAIN), "aliasing"),
    right("silent when compiled, named", _net(
        "x\nprint('size', x.shape[0])\nreturn self.layer(x)\n", "print(",
        "if not torch.compiler.is_compiling(): print("), "output"),
)  # fmt: skip

"""Texts that nobody would write, and many that somebody did: nothing escapes from the check, and all of it ends."""

from __future__ import annotations

import builtins
import importlib.util
import os
import signal
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphmend.analysis.check import Result, check
from graphmend.analysis.program.project import Project
from graphmend.analysis.syntax.source import Source
from graphmend.workspace import files
from graphmend.workspace.module_loader import ModuleLoader

HEAD = "import functools\nimport torch\nfrom torch import Tensor, nn\n"
BODY = HEAD + "@torch.compile\ndef f(x: Tensor):\n    y = x\n"
HANGS_AFTER_SECONDS = 180  # the longest test takes 30 on a busy machine


@pytest.fixture(autouse=True)
def _ends() -> Iterator[None]:
    """A check that hangs fails instead of stopping the tests."""
    if not hasattr(signal, "alarm"):
        yield
        return
    signal.alarm(HANGS_AFTER_SECONDS)
    previous = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("hangs"))
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


def survives(text: str, project: Project | None = None, path: str = "case.py") -> Result:
    """Checks a text and asks everything that an editor would ask about its findings."""
    source = Source(text, path)
    result = check(source, project)
    assert (source.tree is None) == (source.problem is not None) or "torch" not in text
    for finding in result.findings:
        assert source.segment(finding.span)
        result.facts(finding)
    return result


def lines(count: int, line: str) -> str:
    """A line many times, `N` in it counting up."""
    return "".join(line.replace("N", str(i)) + "\n" for i in range(count))


def nested(count: int, header: str, inside: str) -> str:
    """Blocks in blocks, with a statement in each."""
    return "".join(
        "    " * (i + 1) + header.replace("N", str(i)) + "\n" + "    " * (i + 2) + inside + "\n" for i in range(count)
    )


DEEP = {
    "parentheses": BODY + "    return " + "(" * 90 + "x" + ")" * 90,
    "too many parentheses": BODY + "    return " + "(" * 5000 + "x" + ")" * 5000,
    "a long sum": BODY + "    return " + " + ".join(["x"] * 900),
    "a longer sum": BODY + "    return " + " + ".join(["x"] * 3000),
    "a long chain of calls": BODY + "    return x" + ".abs()" * 900,
    "many elifs": BODY + "    if x.sum() < 0:\n        y = 0\n" + lines(150, "    elif x.sum() > N:\n        y = N"),
    "more elifs": BODY + "    if x is f:\n        y = 0\n" + lines(2500, "    elif f is N:\n        y = N"),
    "many branches": BODY
    + lines(60, "    if f(N):\n        y = y + N\n    else:\n        y = (y, N)")
    + "    return y\n",
    "doubling tuples": BODY + lines(60, "    y = (y, y)") + "    return y\n",
    "loops in loops": BODY + nested(15, "for iN in range(3):", "y = y + x"),
    "loops in loops that ask": BODY + nested(15, "while x.sum() > N:", "x = x + y"),
    "inner functions in a row": BODY
    + "    def g0(y): return y\n"
    + "".join(f"    def g{i}(y): return g{i - 1}(y) + g{i - 1}(y) + g{i - 1}(y)\n" for i in range(1, 25))
    + "    return g24(x)\n",
    "comprehensions in comprehensions": BODY
    + f"    return {'[' * 9}x{''.join(f' for i{i} in (1, 2, 3, 4, 5, 6, 7, 8)]' for i in range(9))}\n",
    "doubling sums": BODY + "    s, t = 'ab', (x, x)\n" + lines(60, "    s = s + s\n    t = t + t") + "    return t\n",
    "data": BODY + f"    d = {[*range(5_000)]}\n    d = {dict.fromkeys(map(str, range(5_000)), 1)}\n    return x\n",
    "many statements": BODY + lines(3000, "    yN = x.sum() + N"),
    "a wide tree of calls": HEAD
    + lines(30, "def gN(x): return hN(x) + hN((x,))")
    + lines(30, "def hN(x): return gN(x) if x else hN([x])")
    + "@torch.compile\ndef f(x: Tensor): return "
    + " + ".join(f"g{i}(x)" for i in range(30)),
}
DRIVER = HEAD + (
    "from torch.utils.data import DataLoader, TensorDataset\n@torch.compile\ndef f(x, m=None): return x, m, x[0]\n"
)
GIVEN = (
    "f(t)\nf(torch.ones(2), t)\nf(*t)\nf(torch.tensor(t))\ntorch.compile(t)(t)\ntorch.compile(f, options=t)(t)\n"
    "for b in DataLoader(t, batch_size=2):\n    f(b, m=b)\n"
    "for b in DataLoader([t], batch_size=2):\n    f(b, m=b)\n"
)
DRIVERS = {
    "a list in itself": DRIVER + "t = []\nt.append(t)\nu = [t]\nt += [t, u]\n" + GIVEN,
    "a dict in itself": DRIVER + "t = {}\nt['a'] = t\n" + GIVEN,
    "modules in themselves": DRIVER + "t = nn.ModuleList()\nt.append(t)\n" + GIVEN,
    "a sequence in itself": DRIVER + "t = nn.Sequential()\nt.append(t)\n" + GIVEN,
    "doubling lists": DRIVER + "t = 1.0\n" + lines(40, "t = [t, t]") + GIVEN,
    "doubling dicts": DRIVER + "t = torch.ones(2)\n" + lines(40, "t = dict(a=t, b=t)") + GIVEN,
    "doubling modules": DRIVER + "t = nn.Linear(2, 2)\n" + lines(25, "t = nn.Sequential(t, t)") + GIVEN,
    "a dataset that asks itself": DRIVER
    + "class D:\n    def __getitem__(self, i): return self[i - 1]\n    def __len__(self): return len(self)\n"
    "for b in DataLoader(D(), batch_size=len(D())):\n    f(b)\n",
    "loaders of nothing": DRIVER
    + "for d in (1, None, f, TensorDataset(), TensorDataset(torch.ones(())), TensorDataset(torch.ones(0))):\n"
    "    for s in (-1, 0, None, 10**30):\n        for b in DataLoader(d, s):\n            f(*b)\n"
    "DataLoader()\nDataLoader(*[], **{})\n",
    **{
        f"what Python refuses: {call}": f"{DRIVER}x = torch.ones(3)\nf({call})\n"
        for call in ("torch.arange()", "torch.linspace()", "x[::0]", "[1, 2][::0]", "range(3)[::0]", "torch.randint()")
    },
}
CIRCLES = {
    "function": BODY + "    return f(x)\n",
    "functions": HEAD + "def g(x): return h(x) + g(x)\ndef h(x): return g((x, x)) + h([x])\ntorch.compile(g)\n",
    "growing arguments": HEAD + "def g(x, y): return g((x,), [y]) if y else g([x], (y,))\ntorch.compile(g)\n",
    "bases": HEAD
    + "class A(A): pass\nclass B(C): pass\nclass C(B):\n    def forward(self, x): return super().forward(x)\n"
    "@torch.compile\ndef f(a: A, c: C, x: Tensor): return c.forward(x), a(x)\n",
    "modules": HEAD + "class A(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = A()\n"
    "        self.l = nn.ModuleList([A(), self.a])\n    def forward(self, x):\n        for m in self.l: x = m(x)\n"
    "        return self.a(self.a.a.a.l[0](x))\n",
    "attributes": HEAD
    + "class A(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = self.b\n"
    "        self.b = self.a\n        self.c = self.c + 1\n    @property\n    def p(self): return self.q\n"
    "    @property\n    def q(self): return self.p\n"
    "    def forward(self, x): return x + self.a + self.b + self.c + self.p\n",
    "globals": HEAD
    + "a = b\nb = a\nc = c\nd = lambda: d()\n@torch.compile\ndef f(x: Tensor): return a + b + c + d()\n",
    "defaults": HEAD + "def g(x=lambda: g()): return x()\n@torch.compile\ndef f(x: Tensor): return g()\n",
    "lambdas": BODY + "    return (lambda s: s(s))(lambda s: s(s))\n",
    "partials": HEAD + "p = functools.partial(p, p)\nq = functools.partial(functools.partial, functools.partial)\n"
    "@torch.compile\ndef f(x: Tensor): return p(x), q(q)(x)\n",
    "lists": BODY + "    y = []\n    y.append(y)\n    d = {}\n    d['d'] = d\n    return y[0][0], d['d']['d']\n",
    "compile": HEAD
    + "torch.compile(torch.compile(torch.compile(f)))\nf = torch.compile(f)\ntorch.compile(torch.compile)\n",
}
CALLEES = [name for name in dir(builtins) if name[0].islower()]
CALLEES += [f"x.{name}" for name in ("item", "sum", "view", "size", "to", "split", "max")]
CALLEES += [f"torch.{name}" for name in ("where", "max", "cat", "zeros", "split", "compile", "is_tensor", "no_grad")]
CALLEES += ["functools.partial", "nn.Linear", "nn.ModuleList", "nn.Sequential"]
ODD = {
    "stars": BODY
    + "    a, *b, c = x\n    [d, *e], g = x\n    (*h,) = x\n    return f(*x, **x), torch.add(*b), {**x}, max(*x)\n",
    "methods without self": HEAD
    + "class A(nn.Module):\n    def forward(): return 1\nclass B(nn.Module):\n    forward = None\n"
    "class C(nn.Module):\n    forward = lambda self, x: x.item()\n"
    "class D(nn.Module):\n    async def forward(self, x): return await x\n",
    "calls without arguments": BODY
    + "".join(
        f"    {name}()\n    {name}(x)\n    {name}(*x)\n    {name}(x=1)\n    {name}(1, 2, 3, 4, 5, 6)\n"
        for name in CALLEES
    ),
    "constants that fail": BODY
    + "    1 / 0, 1 % 0, 1 << 10**9, 2 ** 10 ** 10, 'a' * 10**12, -'a', ~1.5, 1 < 'a', 'a' in 1\n"
    "    [] + 1, 10**400 * 1.0, (-1) ** 0.5, 'x%d' % 'a', ().x, (1)[2], 'a'[7], {}[1], [][0], int('a'), not (1)[0]\n",
    "builtins taken away": HEAD + "isinstance = range = len = print = None\n"
    "@torch.compile\ndef f(x: Tensor):\n    print(x); len(x); range(x); isinstance(x, 1)\n",
    "match": BODY
    + "    match x:\n        case [a, *b]: pass\n        case {'k': v, **r}: pass\n        case A(b=1) | None: pass\n"
    "        case (1 | 2) as c if c.sum(): pass\n        case _: pass\n",
    "names taken away": BODY + "    del x\n    del x.a, x[0]\n    global q\n    q = x\n    return q.sum()\n",
    "asynchronous": HEAD
    + "@torch.compile\nasync def f(x: Tensor):\n    async with x as y:\n        async for i in x: await i\n"
    "    return [i async for i in x if await i]\n",
    "decorators": HEAD + "@(lambda f: f)\n@[torch.compile][0]\n@torch.compile(**{})\n@torch.compile(*[1])\n"
    "def f(x: Tensor): return x.item()\n",
    "annotations": HEAD + "@torch.compile\ndef f(a: 'Tens or', b: '', c: 1, d: 'List[', g: 'list[\"Tensor\"]', "
    "h: '\"\\'Tensor\\'\"', i: Tensor[1:2], *j: 'x y'): return a\n",
    "compiled nothing": HEAD + "torch.compile(1)\ntorch.compile(None)\ntorch.compile(*a)\nx.compile()\nself.compile()\n"
    "[torch.compile(m) for m in ms]\ntorch.compile()()()\n",
    "carriage returns": (BODY + "    return x.item()\n").replace("\n", "\r"),
    "surrogate": BODY + "    return '\udce4'\n",
    "null": BODY + "\0",
}


@pytest.mark.parametrize(
    "text",
    [
        *(pytest.param(t, id=n) for d in (DEEP, DRIVERS, CIRCLES, ODD) for n, t in d.items()),
        pytest.param(
            HEAD + "fast = slow\nslow = fast\n@fast\ndef f(x: Tensor): return x\ntorch.compile(f)\n",
            id="decorators named in a circle",
        ),
    ],
)
def test_odd_texts(text: str) -> None:
    survives(text)


class Folder:
    """A loader over texts by module name."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts

    def find(self, module: str) -> tuple[str, str] | None:
        return (f"{module}.py", self.texts[module]) if module in self.texts else None

    def module_name(self, path: str) -> str | None:
        return path.removesuffix(".py")


@pytest.mark.parametrize(
    "texts",
    [
        {
            "a": HEAD
            + "from b import *\nfrom b import g\nclass A(nn.Module):\n    def forward(self, x): return g(x)\n",
            "b": HEAD + "from a import *\nfrom a import A\nfrom c import g\n",
            "c": HEAD + "from b import g\nimport c\nfrom c import c\n",
        },
        {
            "a": HEAD
            + "import a\nfrom a import a as q, f\nfrom . import a\nfrom .....x import z\nfrom a import *\n"
            + BODY
        },
        {
            "a": HEAD + "from b import B\nclass A(B):\n    def forward(self, x): return super().forward(x)\n",
            "b": HEAD + "from a import A\nclass B(A):\n    def forward(self, x): return super().forward(x)\n",
        },
        {
            "a": HEAD + "from m0 import g\ntorch.compile(g)\n",
            **{f"m{i}": f"from m{i + 1} import *\n" for i in range(500)},
        },
        {"a": HEAD + "from b import g\ntorch.compile(g)\n", "b": "def g(:\n"},
    ],
    ids=["in a circle", "of itself", "of its base", "in a long row", "of a broken file"],
)
def test_imports(texts: dict[str, str]) -> None:
    survives(texts["a"], Project(Folder(texts)), "a.py")


MODEL = '''
class Attention(nn.Module):
    """Attention, as models have it."""

    def __init__(self, config, layer_idx: Optional[int] = None):
        super().__init__()
        self.config, self.layer_idx = config, layer_idx
        self.proj = nn.Linear(config.size, config.size, bias=False)
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(config.num_layers)])
        self.register_buffer("scale", torch.tensor(1.0), persistent=False)

    def forward(self, hidden, mask: Optional[Tensor] = None, past=None, **kwargs) -> Tuple[Tensor, Optional[Tensor]]:
        if mask is not None and (mask == 0).all():
            mask = None
        for i, (layer, skip) in enumerate(zip(self.layers, [True, *self.config.skips])):
            hidden = layer(hidden) if not skip else hidden + self.scale
        if hidden.dtype == torch.float16 and torch.isinf(hidden).any():
            clamp = torch.finfo(hidden.dtype).max - 1000
            hidden = torch.clamp(hidden, min=-clamp, max=clamp)
        weights = {name: value.softmax(-1).sum().item() for name, value in kwargs.items() if value is not None}
        try:
            with torch.no_grad():
                logger.warning_once(f"weights {weights!r:>10}")
        except (ValueError, TypeError) as error:
            raise RuntimeError("no weights") from error
        while hidden.abs().max() > 1e3:
            hidden /= 2
        return (hidden, mask, past)[:2] if self.training else self.proj(hidden[..., -1:, :])
'''
CUTS = st.integers(0, len(MODEL))
SWAPS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=6)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(CUTS, st.integers(0, 12), st.text(max_size=3)), max_size=4), SWAPS, CUTS)
def test_damaged_models(edits: list[tuple[int, int, str]], swaps: list[tuple[int, int]], end: int) -> None:
    text = MODEL[:end] if end % 3 == 0 else MODEL
    rows = text.split("\n")
    for a, b in swaps:
        if max(a, b) < len(rows):
            rows[a], rows[b] = rows[b], rows[a]
    text = "\n".join(rows)
    for start, removed, added in edits:
        text = text[:start] + added + text[start + removed :]
    survives(HEAD + text)


@given(st.text())
def test_random_text(text: str) -> None:
    survives("torch\n" + text)
    survives(BODY + "    " + text)


def installed(folder: Path, every: int) -> list[Path]:
    """One of every so many files of a folder, the same each time."""
    return sorted(p for p in folder.rglob("*.py") if "site-packages" not in p.parts)[::every]


def compiling_everything(text: str) -> str:
    """A text with all its top-level functions and classes compiled, so that the check walks them."""
    module = Source(text).tree
    names = [n for s in module.body if (n := getattr(s, "name", None)) is not None] if module is not None else []
    return f"{text}\n\nimport torch\n" + "".join(f"torch.compile({name})\n" for name in names)


@pytest.mark.many
def test_the_standard_library_and_its_tests() -> None:
    library = Path(os.__file__).parent
    project = Project(ModuleLoader(library))
    for path in installed(library, 25):
        try:
            text = files.read(path).text
        except files.FileProblem:
            continue
        survives(compiling_everything(text), project, str(path))


@pytest.mark.many
@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="needs transformers")
def test_models_of_transformers() -> None:
    site = Path(sysconfig.get_path("purelib"))
    project = Project(ModuleLoader(site))
    for path in installed(site / "transformers" / "models", 40):
        survives(files.read(path).text, project, str(path))


def test_a_reading_that_was_too_deep_leaves_nothing_behind() -> None:
    """What a branch tells about a name must not stay when evaluating that branch ends in a RecursionError."""
    text = HEAD + (
        "class A(nn.Module):\n"
        "    def __init__(self, scale: Tensor | None = None):\n"
        "        super().__init__()\n"
        f"        self.deep = {' + '.join(['1'] * 700)} if scale is None else 0\n"
        "        self.scale = scale\n"
        "    def forward(self, x: Tensor):\n"
        "        if self.deep and self.scale is not None:\n"
        "            if self.scale > 0:\n"
        "                return x + 1\n"
        "        return x\n"
    )
    assert "GM101" in [finding.code for finding in check(Source(text, "a.py")).findings]

"""What the analysis says of an expression's kind, rank, dtype and shape holds whenever torch evaluates it.

Rewrites rely on it: equal shape tokens are their proof that `torch.where` does not broadcast, equal dtypes that it does
not promote. torch itself is the oracle, over arguments of many dtypes and shapes.
"""

from __future__ import annotations

import ast
import itertools
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graphmend.analysis.check import check
from graphmend.analysis.lattice.values import Const, Static, Tensor, Value, dtype_kind
from graphmend.analysis.syntax.source import Source

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

OPERANDS = ["x", "y", "x.sum()", "x.float()", "(x > 0)", "torch.zeros(4)", "n", "p", "2", "0.5", "True"]
BINARY = ["+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "<<", "<", "==", "!=", ">="]
NAMES = ["min", "max", "sum", "mean", "prod", "any", "all", "argmax", "amax", "std", "var", "norm", "cumsum", "softmax"]
NAMES += ["logsumexp", "median", "count_nonzero", "squeeze", "unsqueeze", "sort", "argsort", "unbind", "flip", "topk"]
WAYS = ["0", "-1", "dim=0", "dim=-1, keepdim=True", "0, True", "y"]
UNTOUCHED = {
    "dim_order",
    "item",
    "tolist",
    "numpy",
    "cuda",
    "pin_memory",
    "backward",
    "share_memory_",
    "resize_",
    "data_ptr",
    "storage",
}


def expressions() -> Iterator[str]:
    """Everything that is asked about: operators, every method and function that takes one tensor, and more by hand."""
    yield from (f"{a} {op} {b}" for op in BINARY for a, b in itertools.product(OPERANDS, OPERANDS))
    for name in dir(torch.Tensor):
        if not name.startswith("_") and not name.endswith("_") and name not in UNTOUCHED:
            yield f"x.{name}()"
    for name in dir(torch._C._VariableFunctions):
        if not name.startswith("_") and not name.endswith("_") and callable(getattr(torch, name, None)):
            yield f"torch.{name}(x)"
            yield f"torch.{name}(x, y)"
    for name, how in itertools.product(NAMES, WAYS):
        yield from (f"x.{name}({how})", f"torch.{name}(x, {how})")
    yield from Path(__file__).with_name("expressions.txt").read_text("utf-8").splitlines()


def said(asked: list[str]) -> dict[str, Value]:
    """The analysis' value of each expression, in a compiled function."""
    body = "".join(f"    {text}\n" for text in asked)
    head = "import torch\nimport torch.nn.functional as F\nfrom torch import Tensor\n@torch.compile\n"
    source = Source(f"{head}def f(x: Tensor, y: Tensor, n: int, p: float):\n    if x.any(): pass\n{body}")
    assert source.tree is not None
    result = check(source)
    facts = result.facts(result.findings[0])
    function = source.tree.body[-1]
    assert isinstance(function, ast.FunctionDef)
    statements = [s for s in function.body if isinstance(s, ast.Expr)]
    return {text: facts.value(s.value) for text, s in zip(asked, statements, strict=True)}


def arguments() -> Iterator[dict[str, Any]]:
    """Pairs of tensors of many kinds, with numbers. None is complex: the analysis takes promoted dtypes to be real."""
    makers: list[Callable[[], Any]] = [
        lambda: torch.rand(4, 4),
        lambda: torch.rand(4, 4).half(),
        lambda: torch.randint(0, 4, (4, 4)),
        lambda: torch.rand(4) > 0.5,
        lambda: torch.rand(4, dtype=torch.float64),
        lambda: torch.tensor(2),
        lambda: torch.tensor(1.5),
        lambda: torch.rand(2, 3, 4),
    ]
    for number, make in enumerate(makers):
        for other in (make, makers[number - 1], makers[number - 4]):
            yield {"torch": torch, "F": torch.nn.functional, "x": make(), "y": other(), "n": 2, "p": 0.25}


def kind(dtype: Any) -> str:
    if dtype == torch.bool:
        return "bool"
    return "complex" if dtype.is_complex else "float" if dtype.is_floating_point else "int"


def contradiction(value: Value, real: Any) -> str | None:
    """What an abstract value says that the real one refutes; None if nothing."""
    if isinstance(value, Const):
        return None if type(real) is type(value.value) and real == value.value else f"is {real!r}"
    if isinstance(value, Static):
        return "is a Tensor" if isinstance(real, torch.Tensor) else None
    if not isinstance(value, Tensor):
        return None
    if not isinstance(real, torch.Tensor):
        return None if value.likely else f"is a {type(real).__name__}"
    if value.rank is not None and value.rank != real.dim():
        return f"has {real.dim()} dimensions, not {value.rank}"
    name = str(real.dtype).removeprefix("torch.")
    if isinstance(value.dtype, str) and value.dtype not in (name, kind(real.dtype)):
        return f"has dtype {name}, not {value.dtype}"
    if (known := dtype_kind(value.dtype)) is not None and known != kind(real.dtype):
        return f"has dtype {name}, which is no {known}"
    return None


def test_what_is_said_of_values_holds() -> None:
    asked = list(dict.fromkeys(expressions()))
    values = {text: value for text, value in said(asked).items() if isinstance(value, (Tensor, Static))}
    code = {text: compile(text, text, "eval") for text in values}
    refuted: dict[str, str] = {}
    torch.manual_seed(0)
    for given in arguments():
        shapes: dict[Any, dict[Any, str]] = defaultdict(dict)
        dtypes: dict[Any, dict[Any, str]] = defaultdict(dict)
        for text, value in values.items():
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    real = eval(code[text], dict(given))
            except Exception:
                continue  # torch refuses these arguments
            wrong = contradiction(value, real)
            if wrong is not None:
                refuted.setdefault(text, f"{value}: {wrong} for {given['x'].dtype}, {given['y'].dtype}")
            elif isinstance(value, Tensor) and isinstance(real, torch.Tensor):
                if value.shape is not None:
                    shapes[value.shape][tuple(real.shape)] = text
                if value.dtype is not None:
                    dtypes[value.dtype][real.dtype] = text
        for token, seen in itertools.chain(shapes.items(), dtypes.items()):
            if len(seen) > 1 and token not in ("bool", "int", "float", "complex"):
                for text in seen.values():
                    refuted.setdefault(text, f"shares the token {token} with {list(seen.values())}: {list(seen)}")
    assert not refuted, "\n".join(f"{text}: {why}" for text, why in refuted.items())

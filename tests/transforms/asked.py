"""Facts about a place in a branch on a tensor, from the real analysis, for whoever asks one question of them."""

from __future__ import annotations

import ast
import textwrap
from functools import lru_cache

from graphmend.analysis.check import check
from graphmend.analysis.facts.function_facts import FunctionFacts
from graphmend.analysis.syntax.source import Source
from graphmend.transforms.fix import Fix
from graphmend.transforms.offers import mend

_HEAD = """\
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

"""
_SIGNATURE = "x: Tensor, y: Tensor, n: int = 1, f: float = 1.0, o=None, s: str = '', i=()"


@lru_cache(maxsize=512)
def inside(expression: str, before: str = "", other: str = "0", behind: str = "return r", top: str = "",
           test: str = "(x == y).any()") -> tuple[FunctionFacts, ast.expr]:  # fmt: skip
    """Facts, and an expression that one side of a branch binds to `r`; what stands before and behind the branch, and at
    the top of the module.
    """
    lines = [*before.splitlines(), f"if {test}:", f"    r = {expression}", "else:", f"    r = {other}"]
    body = textwrap.indent("\n".join([*lines, *behind.splitlines()]), "    ")
    facts = of_function(f"{_HEAD}{top}\n\n@torch.compile\ndef case({_SIGNATURE}):\n{body}\n")
    wanted = ast.unparse(ast.parse(expression, mode="eval").body)
    for node in ast.walk(facts.function):
        if isinstance(node, ast.Assign) and ast.unparse(node.value) == wanted and ast.unparse(node.targets[0]) == "r":
            return facts, node.value
    raise LookupError(expression)


def of_function(text: str) -> FunctionFacts:
    """Facts about the first branch on a tensor in a module."""
    result = check(Source(text, "model.py"))
    finding = next(f for f in result.findings if f.code == "GM101")
    facts = result.facts(finding)
    assert facts is not None
    return facts


def in_method(expression: str, members: str, test: str = "(x == 0).any()") -> tuple[FunctionFacts, ast.expr]:
    """The same for a method of a module with other members."""
    body = f"        if {test}:\n            r = {expression}\n        else:\n            r = x\n        return r\n"
    facts = of_function(
        f"{_HEAD}\nclass Net(nn.Module):\n{textwrap.indent(textwrap.dedent(members), '    ')}\n"
        f"    def forward(self, x: Tensor):\n{body}\n\nnet = torch.compile(Net())\n"
    )
    for node in ast.walk(facts.function):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "r":
            return facts, node.value
    raise LookupError(expression)


def offered(text: str) -> list[Fix]:
    """The mends that are offered for the findings of a module."""
    result = check(Source(text, "model.py"))
    answers = [answer for finding in result.findings for answer in mend(finding, result.facts(finding))]
    return [answer for answer in answers if isinstance(answer, Fix)]

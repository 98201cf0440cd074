"""Losses of elements that a mask picks: functions and layers of torch that are the mean or the sum of one loss for each
element, or for each row.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import constant, number_type, qualified

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

#: losses of each element, with what else they may be given
_EACH: dict[str, frozenset[str]] = {
    "mse_loss": frozenset(),
    "l1_loss": frozenset(),
    "smooth_l1_loss": frozenset({"beta"}),
    "huber_loss": frozenset({"delta"}),
    "binary_cross_entropy": frozenset(),
    "binary_cross_entropy_with_logits": frozenset(),
    "soft_margin_loss": frozenset(),
}
#: losses of a row of numbers and the index of one of them
_CLASSES: dict[str, frozenset[str]] = {
    "cross_entropy": frozenset({"weight", "ignore_index", "label_smoothing"}),
    "nll_loss": frozenset({"weight", "ignore_index"}),
}
_LAYERS = {
    "MSELoss": "mse_loss",
    "L1Loss": "l1_loss",
    "SmoothL1Loss": "smooth_l1_loss",
    "HuberLoss": "huber_loss",
    "BCELoss": "binary_cross_entropy",
    "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    "SoftMarginLoss": "soft_margin_loss",
    "CrossEntropyLoss": "cross_entropy",
    "NLLLoss": "nll_loss",
}
_IGNORED = -100


@dataclass(frozen=True)
class Loss:
    """A call of a loss with two arguments."""

    call: ast.Call
    name: str
    how: str
    """"mean" or "sum"."""
    layer: bool = False

    @property
    def arguments(self) -> list[ast.expr]:
        return self.call.args

    @property
    def of_classes(self) -> bool:
        return self.name in _CLASSES

    def of_each(self, facts: FunctionFacts, imports: Imports, texts: Mapping[ast.expr, str]) -> str:
        """The text of the loss of each element."""
        code = Code(facts.source)
        name = imports.name(f"torch.nn.functional.{self.name}") if self.layer else code.text(self.call.func)
        given = [code.argument(a, texts) for a in self.arguments]
        given += [f"{k.arg}={code.argument(k.value)}" for k in self.call.keywords if k.arg != "reduction"]
        return f'{name}({", ".join(given)}, reduction="none")'

    def ignored(self, facts: FunctionFacts) -> str:
        """The text of the class that is left out."""
        code = Code(facts.source)
        given = next((k.value for k in self.call.keywords if k.arg == "ignore_index"), None)
        if self.layer:
            return f"{code.operand(self.call.func)}.ignore_index"
        return code.argument(given) if given is not None else str(_IGNORED)

    def written(self, facts: FunctionFacts, rows: str, classes: str) -> str:
        """The text of the call with other arguments."""
        code = Code(facts.source)
        options = "".join(f", {k.arg}={code.argument(k.value)}" for k in self.call.keywords)
        return f"{code.text(self.call.func)}({rows}, {classes}{options})"


def loss_of(facts: FunctionFacts, call: ast.Call) -> Loss | None:
    """A loss that is known, with two arguments by position."""
    if len(call.args) != 2 or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    owner = facts.value(call.func)
    if isinstance(owner, ExternalInstance):
        layer = owner.cls.rpartition(".")[2]
        name = _LAYERS.get(layer) if owner.cls.startswith("torch.nn.") and not call.keywords else None
        how = _made(facts, layer, options=name in _CLASSES) if name is not None else None
        return Loss(call, name, how, layer=True) if name is not None and how is not None else None
    folder, _, name = (qualified(facts, call.func) or "").rpartition(".")
    options = _EACH.get(name, _CLASSES.get(name)) if folder == "torch.nn.functional" else None
    if options is None:
        return None
    how = "mean"
    for keyword in call.keywords:
        if keyword.arg == "reduction":
            how = str(constant(keyword.value))
        elif keyword.arg not in options or not _is_plain(facts, keyword.value):
            return None
    return Loss(call, name, how) if how in ("mean", "sum") else None


def _is_plain(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is an option a number, or read from a name or an attribute, so that it may be read again?"""
    return number_type(facts, node) is not None or isinstance(node, (ast.Constant, ast.Name, ast.Attribute))


def _made(facts: FunctionFacts, layer: str, *, options: bool) -> str | None:
    """How layers of a class reduce, as far as this file makes them; None where that is not known, or where they are
    made with other `options`, unless these stay with them.
    """
    found: set[object] = set()
    for node in ast.walk(facts.source.tree) if facts.source.tree is not None else ():
        if not isinstance(node, ast.Call) or _last(node.func) != layer:
            continue
        keywords = {k.arg: k.value for k in node.keywords}
        reduction = keywords.pop("reduction", None)
        if None in keywords or {"size_average", "reduce"} & {*keywords} or len(node.args) > (1 if options else 0):
            return None
        if keywords and not options:
            return None
        found.add("mean" if reduction is None else constant(reduction))
    how = found.pop() if len(found) == 1 else None
    return how if how in ("mean", "sum") and isinstance(how, str) else None


def _last(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")

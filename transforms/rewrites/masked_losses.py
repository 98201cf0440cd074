"""Losses of elements that a mask picks: functions and layers of torch that are the mean or the sum of one loss for each
element, or for each row.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.syntax.traversal import nodes_in
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
    "kl_div": frozenset({"log_target"}),
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
    """"mean", "sum", or "batchmean": the sum by the number of rows."""
    layer: bool = False

    @property
    def arguments(self) -> list[ast.expr]:
        return self.call.args

    @property
    def of_classes(self) -> bool:
        return self.name in _CLASSES

    @property
    def bounded(self) -> bool:
        """Does it raise for what is not between 0 and 1?"""
        return self.name == "binary_cross_entropy"

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
        how = _made(facts, call.func, owner.cls, options=name in _CLASSES) if name is not None else None
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
    return Loss(call, name, how) if how in ("mean", "sum") or (how, name) == ("batchmean", "kl_div") else None


def _is_plain(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is an option a number, or read from a name or an attribute, so that it may be read again?"""
    return number_type(facts, node) is not None or isinstance(node, (ast.Constant, ast.Name, ast.Attribute))


def _made(facts: FunctionFacts, layer: ast.expr, cls: str, *, options: bool) -> str | None:
    """How a layer of a class reduces, by the only construction that the file stores where it is read from; None where
    that is not known, or where it is made with other `options`, unless these stay with it.
    """
    tree = facts.source.tree
    made = layer if isinstance(layer, ast.Call) else _construction(facts, layer)
    if tree is None or not isinstance(made, ast.Call) or not _constructs(facts, tree, made.func, cls):
        return None
    if any(_says_reduction(n) for n in nodes_in(tree)):
        return None
    keywords = {k.arg: k.value for k in made.keywords}
    reduction = keywords.pop("reduction", None)
    if None in keywords or {"size_average", "reduce"} & {*keywords} or len(made.args) > (1 if options else 0):
        return None
    if (keywords and not options) or any(isinstance(a, ast.Starred) for a in made.args):
        return None
    how = "mean" if reduction is None else constant(reduction)
    return how if how in ("mean", "sum") and isinstance(how, str) else None


def _construction(facts: FunctionFacts, layer: ast.expr) -> ast.expr | None:
    """The value of the only store, in the whole file, to a name or to an attribute of `self`."""
    tree = facts.source.tree
    match layer:
        case ast.Name(id=name):
            scope: ast.AST | None = tree if _binds(tree, name) == 1 else None
        case ast.Attribute(value=ast.Name(id=of), attr=name):
            parameters = [*facts.function.args.posonlyargs, *facts.function.args.args]
            stored = _attributes(tree, name)
            scope = facts.owner if len(stored) == 1 and parameters and parameters[0].arg == of else None
        case _:
            return None
    for node in nodes_in(scope) if scope is not None else ():
        match node:
            case ast.Assign(targets=[target], value=value):
                pass
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                pass
            case _:
                continue
        if isinstance(layer, ast.Name) and isinstance(target, ast.Name) and target.id == name:
            return value
        if isinstance(layer, ast.Attribute) and isinstance(target, ast.Attribute) and target.attr == name:
            return value if isinstance(target.value, ast.Name) and target.value.id == "self" else None
    return None


def _constructs(facts: FunctionFacts, tree: ast.Module, function: ast.expr, cls: str) -> bool:
    """Is a callee the class, by names that the file binds once, or as the packages that they are part of?"""
    words: list[str] = []
    while isinstance(function, ast.Attribute):
        words.insert(0, function.attr)
        function = function.value
    if not isinstance(function, ast.Name) or function.id not in facts.names:
        return False
    whole = ".".join([facts.names[function.id], *words])
    single = _binds(tree, function.id) == 1 or facts.names[function.id] == function.id == "torch"
    last = cls.rpartition(".")[2]
    return single and whole in (cls, f"torch.nn.{last}", f"torch.nn.modules.loss.{last}")


def _binds(tree: ast.AST | None, name: str) -> int:
    """How many places of a file bind a name, whatever the scope."""
    count = 0
    for node in nodes_in(tree) if tree is not None else ():
        match node:
            case ast.Name(id=bound, ctx=ast.Store() | ast.Del()) | ast.arg(arg=bound):
                pass
            case ast.FunctionDef(name=bound) | ast.AsyncFunctionDef(name=bound) | ast.ClassDef(name=bound):
                pass
            case ast.alias(name=module, asname=asname):
                bound = asname or module.partition(".")[0]
            case ast.ExceptHandler(name=str(bound)) | ast.MatchAs(name=str(bound)) | ast.MatchStar(name=str(bound)):
                pass
            case _:
                continue
        count += bound == name
    return count


_SETS = frozenset("setattr __setattr__ add_module register_module".split())


def _attributes(tree: ast.AST | None, name: str) -> list[ast.AST]:
    """The places of a file that store an attribute, or may."""
    found: list[ast.AST] = []
    for node in nodes_in(tree) if tree is not None else ():
        if isinstance(node, ast.Attribute) and node.attr == name and not isinstance(node.ctx, ast.Load):
            found.append(node)
        elif isinstance(node, ast.Call) and _last(node.func) in _SETS:
            names = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            found += [] if names and name not in names else [node]
    return found


def _says_reduction(node: ast.AST) -> bool:
    """May a node store how a layer reduces, behind its construction?"""
    if isinstance(node, ast.Attribute):
        return node.attr == "reduction" and not isinstance(node.ctx, ast.Load)
    return isinstance(node, ast.Constant) and node.value == "reduction"


def _last(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")

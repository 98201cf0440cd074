"""Findings and facts made by hand, for a rewrite alone: the values of expressions are given by their text."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from graphmend.analysis.facts.function_facts import FunctionFacts
from graphmend.analysis.finding import Finding
from graphmend.analysis.lattice.values import UNKNOWN, Const, Scalar, Static, Tensor, Value
from graphmend.analysis.syntax.nodes import statements_of
from graphmend.analysis.syntax.source import Source
from graphmend.transforms.catalogue import Rewrite
from graphmend.transforms.code.text_edits import apply
from graphmend.transforms.fix import Fix, Refusal


def tensor(rank: int | None = None, dtype: object = "float32", shape: object = "s") -> Tensor:
    return Tensor(None, rank, dtype, shape)


def scalar_tensor(dtype: object = "float32") -> Tensor:
    return Tensor(None, 0, dtype, ())


PREDICATE = Tensor(None, 0, "bool", ())


def imported(tree: ast.Module) -> dict[str, str]:
    """The names that a module imports at its top level."""
    names: dict[str, str] = {}
    for statement in statements_of(tree.body):
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                names[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(statement, ast.ImportFrom):
            names.update({a.asname or a.name: f"{statement.module}.{a.name}" for a in statement.names})
    return names


def facts_at(
    text: str, at: str, values: Mapping[str, Value], *, code: str = "GM101", no_grad: bool = False
) -> tuple[Finding, FunctionFacts]:
    """A finding at the first node of a function that reads `at`, and facts with the values of expressions by text."""
    source = Source(text, "model.py")
    tree = source.tree
    assert tree is not None, source.problem
    nodes = [n for n in ast.walk(tree) if isinstance(n, (ast.expr, ast.stmt))]
    node = next(n for n in nodes if ast.unparse(n) == at)
    functions = [n for n in nodes if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    function = next(f for f in functions if any(n is node for n in ast.walk(f)))
    known = {n: v for n in nodes if isinstance(n, ast.expr) and (v := evaluated(n, values)) is not UNKNOWN}
    statements = [n for n in nodes if isinstance(n, ast.stmt)]
    bound = {a.arg: values[a.arg] for a in function.args.args if a.arg in values}
    environments = {s: {**bound, **_assigned(function, s, values)} for s in statements}
    off = frozenset(statements) if no_grad else frozenset()
    facts = FunctionFacts(source, function, node, imported(tree), known, environments, off, "2.13")
    span = source.span(node)
    finding = Finding(code, "", "", "model.py", span, function.name, "compiled", "certain", "splits", ())
    return finding, facts


_REDUCED = ("sum", "mean", "any", "all", "min", "max", "argmax", "norm")


def evaluated(node: ast.expr, values: Mapping[str, Value]) -> Value:
    """A value by text, else by the few rules of torch that the tests need."""
    if (text := ast.unparse(node)) in values:
        return values[text]
    match node:
        case ast.Constant(value=value):
            return Const(value)
        case ast.Compare(left=left, comparators=[right], ops=[op]) if not isinstance(
            op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)
        ):
            sides = [evaluated(s, values) for s in (left, right)]
            tensors = [s for s in sides if isinstance(s, Tensor)]
            if tensors:
                return Tensor(None, tensors[0].rank, "bool", tensors[0].shape)
            return next((Scalar(None, "bool") for s in sides if isinstance(s, Scalar)), UNKNOWN)
        case ast.BinOp(left=left, right=right):
            tensors = [v for s in (left, right) if isinstance(v := evaluated(s, values), Tensor)]
            return max(tensors, key=lambda t: t.rank or 0) if tensors else UNKNOWN
        case ast.UnaryOp(operand=operand):
            return evaluated(operand, values)
        case ast.Call(func=ast.Attribute(value=base, attr=attr), args=args):
            tensor = evaluated(base, values)
            if ast.unparse(base) in ("torch", "th") and args:
                tensor = evaluated(args[0], values)
            if not isinstance(tensor, Tensor):
                return UNKNOWN
            if attr in _REDUCED:
                return Tensor(
                    None, 0, "bool" if attr in ("any", "all") else "int64" if attr == "argmax" else tensor.dtype, ()
                )
            if attr in ("isnan", "isinf"):
                return Tensor(None, tensor.rank, "bool", tensor.shape)
            return Scalar(None) if attr in ("item", "tolist") else tensor
        case ast.Call(func=ast.Name(id="int" | "float" | "bool" as kind), args=[inner]):
            return Scalar(None, kind) if isinstance(evaluated(inner, values), (Tensor, Scalar)) else UNKNOWN
        case ast.Attribute(attr="dtype" | "shape" | "device"):
            return Static()
    return UNKNOWN


def _assigned(function: ast.AST, statement: ast.stmt, values: Mapping[str, Value]) -> dict[str, Value]:
    names = {
        n.id
        for n in ast.walk(function)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.lineno < statement.lineno
    }
    return {n: values[n] for n in names if n in values}


def mended(
    rewrite: Rewrite, text: str, at: str, values: Mapping[str, Value], *, code: str = "GM101", no_grad: bool = False
) -> str:
    """The text after one rewrite."""
    finding, facts = facts_at(text, at, values, code=code, no_grad=no_grad)
    answer = rewrite(finding, facts)
    assert isinstance(answer, Fix), answer
    return apply(text, answer.edits(), facts.source)


def refused(
    rewrite: Rewrite, text: str, at: str, values: Mapping[str, Value], *, code: str = "GM101", no_grad: bool = False
) -> str:
    """The reason for which a rewrite refuses."""
    answer = rewrite(*facts_at(text, at, values, code=code, no_grad=no_grad))
    assert isinstance(answer, Refusal), answer
    return answer.reason

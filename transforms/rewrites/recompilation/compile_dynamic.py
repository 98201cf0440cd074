"""Compile for any size, or any whole number, from the start.

Before:
    for batch in batches:
        net(batch)

After:
    for batch in batches:
        torch._dynamo.maybe_mark_dynamic(batch, 0)
        net(batch)

Legal when:
    the sizes of a tensor that is an argument differ between calls in sight, or a number that is an argument, is held
    by one, or is reached from a variable around the function, a partial or an attribute. Where every such call gives
    the tensor by name, in a statement of the same file that makes the call whatever happens, and nothing compiled
    reaches the function around it, its dimensions are marked there; else the compile call says `dynamic=True`, in
    place of `dynamic=False` too, where that ends it.

Differs in:
    where the program asks for one graph for each size, or the compile call is changed: a backend may make slower code
    for sizes that are kept open. Marking alone differs in nothing at the top level of a file: TorchDynamo does the
    same once it has seen another size. In a function, compiled code of another file may call it, which then raises
    or breaks there, for TorchDynamo does not trace a mark.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from graphmend.analysis.driver.guards.facts import WIDENED
from graphmend.analysis.facts.function_facts import parents_in
from graphmend.analysis.syntax.span import Span
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.positions import begins_line
from graphmend.transforms.code.text_edits import insert_before, replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.context import Callers, other_files_call
from graphmend.transforms.rewrites.answers import asks, offer, refuse
from graphmend.transforms.rewrites.varied_numbers import kind_of

if TYPE_CHECKING:
    from graphmend.analysis.driver.guards.variation import Place, Variation
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "compile_dynamic"
_MARK, _STATIC = "torch._dynamo.maybe_mark_dynamic", "torch._dynamo.mark_static"
_EACH = Difference("evaluation", "one graph serves every size, and a backend may make slower code of it")
_ALL = Difference(
    "evaluation", "every size and number of the inputs is kept open, of which a backend may make slower code"
)


@asks("context", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    variation = facts.variation
    if variation is None or variation.kind not in ("size", "argument", "item"):
        return None
    if any(step[0] not in ("argument", "item", "size") for step in variation.path):
        return None
    if variation.kind != "size" and kind_of(variation) != "int":
        return None
    if variation.site.module.source.path != finding.path:
        return refuse(NAME, f"`{variation.name}` is compiled in another file")
    marked = _static_marks(facts, variation) if variation.static else []
    if marked:
        return offer(NAME, "mark the size dynamic", facts, lambda: _marked_otherwise(facts, marked), [_EACH])
    is_size = variation.kind == "size" and len(variation.path) == 2
    if is_size and not variation.static and (calls := _by_name(facts, variation)) is not None:
        title = f"mark the size of `{variation.filled()['subject']}` dynamic"
        return offer(NAME, title, facts, lambda: _marks(facts, variation, calls), _refused_elsewhere(facts, calls))
    edit = _compiled_dynamic(facts, variation.site.node)
    if edit is None:
        return refuse(NAME, f"how `{variation.name}` is compiled cannot be changed there")
    return offer(NAME, "compile with dynamic=True", facts, lambda: [edit], [_EACH if variation.static else _ALL])


@asks("context", "names")
def number(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    """A number that no tensor can stand for: one that is a float, or that a variable, a partial or an attribute holds.
    Whether the trace needs its value all the same, the check of the mended program tells.
    """
    variation = facts.variation
    if variation is None or variation.static or not _may_stay_open(variation):
        return None
    if variation.site.module.source.path != finding.path:
        return refuse(NAME, f"`{variation.name}` is compiled in another file")
    edit = _compiled_dynamic(facts, variation.site.node)
    if edit is None:
        return refuse(NAME, f"how `{variation.name}` is compiled cannot be changed there")
    return offer(NAME, "compile with dynamic=True", facts, lambda: [edit], [_ALL])


def _may_stay_open(variation: Variation) -> bool:
    """Does TorchDynamo compile numbers of that type for any value, where this one stands?"""
    where = "global" if variation.path[0][0] == "global" else variation.kind
    return kind_of(variation) in WIDENED.get("module attribute" if variation.in_module else where, ())


def _by_name(facts: FunctionFacts, variation: Variation) -> list[tuple[ast.stmt, Place]] | None:
    """The statements of all calls, where each gives the tensor by name and has its line to itself."""
    tree = facts.source.tree
    assert tree is not None
    parents = parents_in(tree)
    callers = Callers(tree, parents)
    found: list[tuple[ast.stmt, Place]] = []
    for call, place in variation.at.items():
        if place.module.source.path != facts.source.path or not isinstance(place.node, ast.Name):
            return None
        if not callers.are_plain(call):
            return None  # TorchDynamo refuses to trace a mark
        node: ast.AST = call
        while not isinstance(node, ast.stmt):
            if _may_skip(parents[node], node):
                return None
            node = parents[node]
        if any(isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)) for n in nodes_in(node)):
            return None
        traced = place.function is not None and _imports(facts, place).facts.is_traced(node)
        if traced:
            return None
        simple = isinstance(node, (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return))
        if not simple or not begins_line(facts.source, node):
            return None
        found.append((node, place))
    return found


def _refused_elsewhere(facts: FunctionFacts, calls: list[tuple[ast.stmt, Place]]) -> list[Difference]:
    """By function in which a mark is put, what differs where code of another file is compiled along with it."""
    tree = facts.source.tree
    assert tree is not None
    parents = parents_in(tree)
    reached = {other_files_call(parents, statement): None for statement, _ in calls}
    says = "where compiled code of another file calls `{}`, TorchDynamo refuses to trace the mark"
    return [Difference("exception", says.format(name)) for name in reached if name is not None]


def _may_skip(parent: ast.AST, node: ast.AST) -> bool:
    """May an expression leave out a part, or make it later or several times?"""
    if isinstance(parent, ast.IfExp):
        return node is not parent.test
    if isinstance(parent, ast.BoolOp):
        return node is not parent.values[0]
    if isinstance(parent, ast.Compare):
        return node not in (parent.left, parent.comparators[0])
    return isinstance(
        parent, (ast.Lambda, ast.comprehension, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    )


def _marks(facts: FunctionFacts, variation: Variation, calls: list[tuple[ast.stmt, Place]]) -> list[TextEdit]:
    dimensions = variation.dimensions or (int(str(variation.path[-1][1])),)
    which = str(dimensions[0]) if len(dimensions) == 1 else str(list(dimensions))
    edits: list[TextEdit] = []
    for statement, place in calls:
        imports, name = _imports(facts, place), ast.unparse(place.node)
        edits.append(insert_before(facts.source, statement, f"{imports.name(_MARK)}({name}, {which})\n"))
        edits += imports.edits()
    return edits


def _imports(facts: FunctionFacts, place: Place) -> Imports:
    """Names for new code where a call stands."""
    function = place.function.node if place.function is not None else None
    here = isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
    return Imports(facts.within(function) if here else facts)  # type: ignore[arg-type]


def _static_marks(facts: FunctionFacts, variation: Variation) -> list[tuple[ast.expr, Place]]:
    """The callees of `mark_static` for what the calls are given by name."""
    found: list[tuple[ast.expr, Place]] = []
    for place in variation.at.values():
        function = place.function.node if place.function is not None else facts.source.tree
        for node in nodes_in(function) if function is not None else ():
            match node:
                case ast.Call(func=func, args=[ast.Name(id=name), *_]) if (
                    isinstance(place.node, ast.Name)
                    and name == place.node.id
                    and place.module.source.path == facts.source.path
                    and place.module.qualified(func) == _STATIC
                    and func not in [one for one, _ in found]
                ):
                    found.append((func, place))
    return found


def _marked_otherwise(facts: FunctionFacts, marks: list[tuple[ast.expr, Place]]) -> list[TextEdit]:
    edits: list[TextEdit] = []
    for callee, place in marks:
        imports = _imports(facts, place)
        edits += [replace_expression(facts.source, callee, imports.name(_MARK)), *imports.edits()]
    return edits


def _compiled_dynamic(facts: FunctionFacts, site: ast.expr) -> TextEdit | None:
    """`dynamic=True` in a call of `compile`, or a decorator that becomes one."""
    function = site.func if isinstance(site, ast.Call) else site
    last = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if last != "compile":
        return None
    text = Code(facts.source).text(site)
    if not isinstance(site, ast.Call):
        return replace_expression(facts.source, site, f"{text}(dynamic=True)")
    for keyword in site.keywords:
        if keyword.arg is None:
            return None
        if keyword.arg == "dynamic":
            return replace_expression(facts.source, keyword.value, "True")
    given = [*site.args, *(keyword.value for keyword in site.keywords)]
    if not given:
        return replace_expression(facts.source, site, f"{Code(facts.source).text(site.func)}(dynamic=True)")
    last = max(given, key=lambda node: (node.end_lineno or 0, node.end_col_offset or 0))
    inside = Code(facts.source).text(last)
    here, whole = facts.source.span(last), facts.source.span(site)
    behind = facts.source.segment(Span(here[2], here[3], whole[2], whole[3]))
    if re.sub(r"#[^\n]*", "", behind).strip(" \t\r\n\\,") != ")":
        return None  # brackets around the last argument
    return replace_expression(facts.source, last, f"{inside}, dynamic=True")

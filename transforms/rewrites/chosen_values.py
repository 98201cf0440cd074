"""Python values of which tensors choose one: by which tests, and which expressions they are used in."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance, ExternalName
from graphmend.analysis.lattice.values import Container, Scalar, Static, Tensor
from graphmend.analysis.program.entities import Class, Function, Instance
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bound_before
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.liveness import locals_of, parameters, reads, writes
from graphmend.transforms.code.qualified_names import NUMBER_TYPES, constant
from graphmend.transforms.if_conversion.value_tests import depends
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.outside.tables import is_entry
from graphmend.transforms.legality.own_functions import is_still_named
from graphmend.transforms.rewrites.decided_tests import decided

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


class NotLateError(Exception):
    """A choice that cannot be put off to where its values are used; the message says why."""


@dataclass(frozen=True, eq=False)
class Leaf:
    """What names are bound to where some tests have decided so."""

    values: Mapping[str, ast.expr]


@dataclass(frozen=True, eq=False)
class Fork:
    """A test on tensors, and what either answer leads to."""

    test: ast.expr
    then: Tree
    otherwise: Tree


Tree = Leaf | Fork


def leaves(tree: Tree) -> Iterator[Leaf]:
    if isinstance(tree, Leaf):
        yield tree
    else:
        yield from leaves(tree.then)
        yield from leaves(tree.otherwise)


def forks(tree: Tree) -> Iterator[Fork]:
    """The tests of a tree, each in front of those that only one answer of it leads to."""
    if isinstance(tree, Fork):
        yield tree
        yield from forks(tree.then)
        yield from forks(tree.otherwise)


# -- what is chosen


def chosen(facts: FunctionFacts, node: ast.expr, name: str) -> Tree:
    """The choice that a conditional expression makes for a name."""
    if isinstance(node, ast.IfExp) and depends(facts, node.test):
        return Fork(node.test, chosen(facts, node.body, name), chosen(facts, node.orelse, name))
    return Leaf({name: node})


def bound_by(facts: FunctionFacts, statement: ast.If) -> tuple[Tree, set[ast.stmt]]:
    """The choice that a branch makes for the names that it binds to Python values, and the statements that bind them.
    A name that a side does not bind is what it was before.
    """
    wanted = _python_names(facts, statement)
    taken: set[ast.stmt] = set()

    def side(statements: Sequence[ast.stmt]) -> Tree:
        if len(statements) == 1 and isinstance(inner := statements[0], ast.If) and depends(facts, inner.test):
            return Fork(inner.test, side(inner.body), side(inner.orelse))
        values: dict[str, ast.expr] = {}
        for bound in statements:
            given = _given(bound)
            if given is not None and given.keys() <= wanted:
                taken.add(bound)
                values |= given
        return Leaf({name: values.get(name) or _before(facts, statement, name) for name in sorted(wanted)})

    tree = Fork(statement.test, side(statement.body), side(statement.orelse))
    for bound in (n for n in nodes_in(statement) if isinstance(n, ast.stmt) and n not in taken):
        if (deeper := wanted & (_given(bound) or {}).keys()) != set():
            raise NotLateError(f"`{min(deeper)}` is bound in a branch within a side that does more")
    return tree, taken


def _python_names(facts: FunctionFacts, statement: ast.If) -> set[str]:
    """The names that a branch binds to Python values alone, and that it does not read."""
    given: dict[str, list[ast.expr]] = {}
    other: set[str] = set()
    for node in nodes_in(statement):
        if not isinstance(node, ast.stmt) or isinstance(node, ast.If):
            continue
        values = _given(node)
        if values is None:
            other |= writes(node) | reads(node)
            continue
        for name, value in values.items():
            other |= reads(value)
            given.setdefault(name, []).append(value)
    found = {name for name, values in given.items() if all(_is_python(facts, value) for value in values)}
    tested = reads(*_tests(statement))
    if given_up := {n for n in found & tested - other if _read(facts, statement, n) and _are_none(given[n])}:
        return given_up
    numbers = {name for name in found if all(_is_number(facts, value) for value in given[name])}
    found -= other | tested
    return found if found - numbers else numbers & found


def _are_none(values: Sequence[ast.expr]) -> bool:
    return all(isinstance(value, ast.Constant) and value.value is None for value in values)


def _read(facts: FunctionFacts, statement: ast.If, name: str) -> ast.Name | None:
    """Where a test of a branch reads an attribute of a tensor of that name, which is not None then."""
    inside = (n for test in _tests(statement) for n in nodes_in(test) if isinstance(n, ast.Attribute))
    named = (n.value for n in inside if isinstance(n.value, ast.Name) and n.value.id == name)
    return next((n for n in named if isinstance(facts.value(n), Tensor)), None)


def _tests(statement: ast.If) -> list[ast.expr]:
    return [n.test for n in nodes_in(statement) if isinstance(n, ast.If)]


def _given(statement: ast.stmt) -> dict[str, ast.expr] | None:
    """What an assignment binds names to."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return {name: value}
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            return {name: value}
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(values):
            names = [t.id for t in targets if isinstance(t, ast.Name)]
            starred = any(isinstance(v, ast.Starred) for v in values)
            return dict(zip(names, values, strict=True)) if len({*names}) == len(targets) and not starred else None
    return None


def _before(facts: FunctionFacts, statement: ast.stmt, name: str) -> ast.expr:
    """What a name is before a statement: a literal, or what the name says."""
    if isinstance(statement, ast.If) and (read := _read(facts, statement, name)) is not None:
        return read
    before = bound_before(facts, statement, name)
    if before is None or not (_is_python(facts, before) or isinstance(facts.value(before), Static)):
        raise NotLateError(f"what `{name}` is before the branch is not known")
    return before if isinstance(before, ast.Constant) else ast.Name(name, ast.Load())


def _is_python(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is a value none of a tensor: a literal, a function, a module, or a tuple of such?"""
    if isinstance(node, (ast.Constant, ast.Lambda)) or constant(node) is not None:
        return True
    if isinstance(node, ast.Tuple):
        return all(_is_python(facts, e) for e in node.elts)
    if not _is_path(node) and not is_entry(facts, node):
        return False
    value = facts.value(node)
    if isinstance(value, Container):
        return value.kind == "modules"
    module = isinstance(value, ExternalInstance) and value.cls.startswith("torch.nn.")
    return module or isinstance(value, (Static, ExternalName, Function, Class, Instance))


def _is_number(facts: FunctionFacts, node: ast.expr) -> bool:
    value = facts.value(node)
    return isinstance(value, Static) and value.type in NUMBER_TYPES


def _is_path(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def check_python(facts: FunctionFacts, tree: Tree) -> None:
    """Raises where a tensor, or what is not known, is chosen, or where choosing does something."""
    for leaf in leaves(tree):
        for value in leaf.values.values():
            if found := effects(facts, value):
                raise NotLateError(found[0])
            if not _is_python(facts, value):
                raise NotLateError(f"`{shortened(value)}` is not known to be a Python value")


def check_kept(facts: FunctionFacts, behind: Sequence[ast.stmt], tree: Tree, found: Sequence[Use]) -> None:
    """Raises where what is chosen from may change before it is used, which is up to the end of `behind`."""
    values = [value for leaf in leaves(tree) for value in leaf.values.values()]
    names = {name for leaf in leaves(tree) for name in leaf.values}
    attributes = {n.attr for value in values for n in nodes_in(value) if isinstance(n, ast.Attribute)}
    nodes = [n for s in behind for n in nodes_in(s)]
    stored = {n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
    if writes(*behind) & (reads(*values) | names) or stored & attributes:
        raise NotLateError("what is chosen from changes before it is used")
    if any(_may_change(facts, n) for value in values for n in nodes_in(value)):
        own = effects(facts, found[0].whole) if len(found) == 1 else []  # what the only use does comes too late
        if others := [effect for effect in effects(facts, *behind) if effect not in own]:
            raise NotLateError(f"{others[0]}, and may change what is chosen from")


def _may_change(facts: FunctionFacts, node: ast.AST) -> bool:
    """May code elsewhere bind what a name or attribute stands for to something else?"""
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return False
    inner = (n.names for n in nodes_in(facts.function) if isinstance(n, ast.Nonlocal))
    if isinstance(node, ast.Name) and any(node.id in names for names in inner):
        return True
    if isinstance(facts.value(node), (ExternalName, Function, Class)):
        return not is_still_named(facts, node)
    around = (above for above in facts.ancestors(node) if isinstance(above, ast.Lambda))
    bound = {name for one in around for name in parameters(one)}
    return isinstance(node, ast.Attribute) or node.id not in locals_of(facts.function) | bound


# -- where it is used


Decided = Mapping[Leaf, bool]


@dataclass(frozen=True, eq=False)
class Part:
    """What stands for the values in an expression: a name, or a comparison that they decide."""

    node: ast.expr
    name: str
    decided: Decided | None = None
    """What it gives for each choice, where that is a bool that is known."""


@dataclass(frozen=True, eq=False)
class Use:
    """An expression in which what is chosen is used."""

    whole: ast.expr
    parts: tuple[Part, ...]
    possible: tuple[Leaf, ...]
    """The choices with which it is reached."""

    @property
    def decided(self) -> Decided | None:
        """What a test gives for each choice, where the values alone decide it."""
        return self.parts[0].decided if self.parts[0].node is self.whole else None


def uses(facts: FunctionFacts, statement: ast.stmt, behind: Sequence[ast.stmt], tree: Tree) -> list[Use]:
    """The expressions behind a choice that use its names, none inside another one."""
    names = {name for leaf in leaves(tree) for name in leaf.values}
    inside = {n for s in behind for n in nodes_in(s)}
    own = {*nodes_in(statement)}
    tensors = {n for leaf in leaves(tree) for n in leaf.values.values() if isinstance(facts.value(n), Tensor)}
    in_loop = any(isinstance(a, (ast.For, ast.AsyncFor, ast.While)) for a in facts.ancestors(statement))
    wholes: dict[ast.expr, list[Part]] = {}
    for node in nodes_in(facts.function):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and names & {*node.names}:
            raise NotLateError("what is chosen is bound for others, too")
        if not (isinstance(node, ast.Name) and node.id in names) or isinstance(node.ctx, ast.Store):
            continue
        if tensors and any(node in nodes_in(fork.test) for fork in forks(tree)):
            continue  # a tensor, of which None is kept as the answer to that test
        if node not in inside:
            if node in own or in_loop or node.lineno > statement.lineno or _is_captured(facts, node):
                raise NotLateError(f"`{node.id}` is read elsewhere as well")
            continue
        part = _part(facts, node, tree)
        wholes.setdefault(_whole(facts, part, tree), []).append(part)
    if not wholes:
        raise NotLateError("what is chosen is not used behind it")
    tests = {part.node: part.decided for parts in wholes.values() for part in parts if part.decided is not None}
    found = []
    for whole in wholes:
        if any(whole is not other and whole in nodes_in(other) for other in wholes):
            continue
        parts = [part for other, of in wholes.items() if other in nodes_in(whole) for part in of]
        if not (possible := tuple(_possible(facts, whole, tree, tests))):
            raise NotLateError(f"`{shortened(whole)}` is never reached")
        if tensors and len(possible) > 1 and any(part.decided is None for part in parts):
            raise NotLateError(f"`{shortened(whole)}` takes both a tensor and None")
        found.append(Use(whole, tuple(parts), possible))
    if all(use.whole is part.node and part.decided is None for use in found for part in use.parts):
        raise NotLateError("the numbers are only computed with, and can be selected themselves")
    return found


def _is_captured(facts: FunctionFacts, node: ast.expr) -> bool:
    """Does a function or class inside the function read a name, whenever it is called?"""
    around = (a for a in facts.ancestors(node) if a is not facts.function)
    return any(isinstance(a, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)) for a in around)


def _possible(facts: FunctionFacts, node: ast.expr, tree: Tree, tests: Mapping[ast.expr, Decided]) -> Iterator[Leaf]:
    """The choices with which an expression is evaluated, as the tests around it say."""
    left = [*leaves(tree)]
    child: ast.AST = node
    for above in facts.ancestors(node):
        if isinstance(above, (ast.If, ast.IfExp)) and (answers := tests.get(above.test)) is not None:
            then, otherwise = ([s] if isinstance(s, ast.expr) else s for s in (above.body, above.orelse))
            if any(child is s for s in then):
                left = [leaf for leaf in left if answers[leaf]]
            elif any(child is s for s in otherwise):
                left = [leaf for leaf in left if not answers[leaf]]
        child = above
    yield from left


def _part(facts: FunctionFacts, name: ast.Name, tree: Tree) -> Part:
    """A name, or the comparison around it that is decided by what the name stands for."""
    node: ast.expr = name
    while isinstance(above := facts.parent(node), ast.Compare) or (
        isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.Not)
    ):
        node = above
    decided = _decided(facts, node, tree) if node is not name or _is_asked(facts, name) else None
    return Part(name, name.id) if decided is None else Part(node, name.id, decided)


def _is_asked(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is a value asked for its truth?"""
    above = facts.parent(node)
    while isinstance(above, ast.BoolOp):
        node, above = above, facts.parent(above)
    return isinstance(above, (ast.If, ast.IfExp, ast.While)) and above.test is node


def _whole(facts: FunctionFacts, part: Part, tree: Tree) -> ast.expr:
    """The expression that is chosen instead of a value: a test that is decided, else the smallest that gives a tensor
    or a number.
    """
    if part.decided is not None and _is_asked(facts, part.node):
        return part.node
    numbers = part.decided is None and all(_is_number(facts, leaf.values[part.name]) for leaf in leaves(tree))
    computes = isinstance(facts.parent(part.node), (ast.BinOp, ast.UnaryOp, ast.Compare))
    return part.node if numbers and computes else whole_of(facts, part.node)


#: what a value is not chosen around: it is computed anew for each element, at another time, or kept
_BOUNDS = (
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda),
    *(ast.JoinedStr, ast.FormattedValue, ast.NamedExpr),
)


def whole_of(facts: FunctionFacts, node: ast.expr) -> ast.expr:
    """The smallest expression around a Python value that gives a tensor, a number or what is not known."""
    whole = node
    while True:
        above = facts.parent(whole)
        if isinstance(above, ast.Slice):
            raise NotLateError(f"`{shortened(node)}` says how much is taken")
        starred = isinstance(above, ast.Starred)
        while isinstance(above, (ast.keyword, ast.Starred)):
            above = facts.parent(above)
        called = isinstance(above, ast.Call) and above.func is whole
        value = facts.value(whole)
        part = isinstance(above, (ast.Attribute, ast.Subscript)) and above.value is whole
        part = part and not isinstance(value, Tensor)
        python = isinstance(value, (Static, ExternalName, Function)) and not isinstance(value, Scalar)
        if whole is not node and not (python or called or part or starred):
            return whole
        if not isinstance(above, ast.expr) or isinstance(above, _BOUNDS):
            if not isinstance(whole, ast.Call) or starred:
                raise NotLateError(f"`{shortened(node)}` is more than used in an expression")
            return whole
        whole = above


def _decided(facts: FunctionFacts, node: ast.expr, tree: Tree) -> Decided | None:
    """What a test gives for each choice, where literals alone decide it."""
    found = {leaf: decided(facts, node, leaf.values) for leaf in leaves(tree)}
    known = {leaf: answer for leaf, answer in found.items() if answer is not None}
    return known if len(known) == len(found) else None

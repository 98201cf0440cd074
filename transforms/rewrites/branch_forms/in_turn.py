"""Ask a branch again in front of each statement in it, so that each is selected on its own and in its order.

Before:
    if loss < self.best:
        self.best.copy_(loss)
        self.wait.zero_()
    else:
        self.wait.add_(1)
        if self.wait >= 3:
            self.stopped.fill_(True)

After:
    condition = loss < self.best
    if condition:
        self.best.copy_(loss)
    if condition:
        self.wait.zero_()
    condition_2 = ~condition
    if condition_2:
        self.wait.add_(1)
    condition_3 = condition_2 & (self.wait >= 3)
    if condition_3:
        self.stopped.fill_(True)

Legal when:
    a branch on a tensor holds simple statements, further branches, and loops that nothing leaves early. Where it
    returns, every path from it returns. A name that nobody asks for its value from before is bound whatever the
    branch decides. Tests and such values only compute.

Differs in:
    tests and values are computed where they were not, and may raise; their derivatives may not be finite. It is written
    for the mends of branches, each of which decides on its own statement, and stays where they remove the break.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Container
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import stores
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import alive, awaited, fresh, reads, writes
from graphmend.transforms.code.positions import is_elif, replaceable
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.code.text_edits import HOLE, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal
from graphmend.transforms.if_conversion.branch_statement import given_up, may_return, returns
from graphmend.transforms.if_conversion.loop_ends import run_through
from graphmend.transforms.if_conversion.selection import NotSelectableError
from graphmend.transforms.if_conversion.tensor_predicates import NotATensorError, Predicates
from graphmend.transforms.if_conversion.value_tests import depends, split
from graphmend.transforms.legality.gradients.sides import gradient_differences, recorded
from graphmend.transforms.legality.speculation import speculate
from graphmend.transforms.legality.writes.changes import changes
from graphmend.transforms.rewrites.answers import asks, prepare, refuse
from graphmend.transforms.rewrites.asked_again import keeps

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "in_turn"
_LEAKS = Difference("gradients", "gradients may become NaN where the derivative of a change in place is not finite")
_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Assert, ast.Raise)
_LEAVES = (ast.Break, ast.Continue, ast.Return)


@asks("effects", "totality", "memory", "order", "numbers", "gradients", "names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = _outermost(facts)
    if statement is None or _is_single(statement):
        return None
    block = facts.body_of(statement)
    behind = block[block.index(statement) + 1 :]
    leaves_partly = may_return(statement) and not (returns(statement.body) and returns(statement.orelse))
    if leaves_partly and not returns(behind) and not _ends_all(facts, statement, behind):
        return refuse(NAME, "what happens when the branch does not return is not written behind it")
    old = [statement, *(behind if leaves_partly else [])]
    if not replaceable(facts, old) or is_elif(facts.source, statement):
        return refuse(NAME, "the statement shares its line with another one")
    if (name := given_up(facts, statement)) is not None:
        return refuse(NAME, f"`{name}` may be no tensor any more where the next test would ask it")
    imports = Imports(facts)
    turns = _Turns(facts, Predicates(facts, imports))
    try:
        turns.run(statement, old[1:])
        found = speculate(facts, *turns.evaluated)
    except (NotSelectableError, NotATensorError) as error:
        return refuse(NAME, str(error))
    if found.blockers:
        return refuse(NAME, found.blockers[0])
    differences = [
        *turns.predicates.differences,
        *found.differences,
        *gradient_differences(facts, statement, [turns.evaluated]),
        *([_LEAKS] if turns.changes and recorded(facts, statement) else []),
    ]
    text = "\n".join(turns.lines) + "\n"
    return prepare(
        NAME,
        "ask the branch again in front of each of its statements",
        facts,
        lambda: [*imports.edits(), replace_statements(facts.source, old, text, *turns.kept)],
        differences,
    )


def _outermost(facts: FunctionFacts) -> ast.If | None:
    """The branch on a tensor that the finding is in; of several the one around the others."""
    found = None
    here: ast.AST | None = facts.statement
    while isinstance(here, (ast.If, ast.For)):
        if isinstance(here, ast.If) and depends(facts, here.test):
            found = here
        here = facts.parent(here)
    return found


def _is_single(statement: ast.If) -> bool:
    """Is there but one simple statement on a side, which other mends are about?"""
    sides = [side for side in (statement.body, statement.orelse) if side]
    return all(len(side) == 1 and isinstance(side[0], (*_SIMPLE, ast.Return, ast.Pass)) for side in sides)


def _ends_all(facts: FunctionFacts, statement: ast.If, behind: Sequence[ast.stmt]) -> bool:
    """Does a branch return nothing, as the end of the function behind it does?"""
    given = [n.value for s in (statement, *behind) for n in nodes_in(s) if isinstance(n, ast.Return)]
    return facts.body_of(statement) is facts.function.body and not any(given)


class _Place(NamedTuple):
    """Where statements stand in the new text."""

    holds: str
    """The name of the tensor that says whether they run; empty in front of the first test."""
    around: tuple[ast.stmt, ...] = ()
    """What they stand in, the outermost first."""
    indent: str = ""

    def under(self, holds: str, statement: ast.stmt) -> _Place:
        """Under a test of the branch `statement`."""
        return _Place(holds, (*self.around, statement), self.indent)

    def inside(self, statement: ast.stmt) -> _Place:
        """Inside a loop, or a branch that stays one."""
        return _Place(self.holds, (*self.around, statement), f"{self.indent}    ")


class _Turns:
    """The statements of a branch, one after the other."""

    def __init__(self, facts: FunctionFacts, predicates: Predicates) -> None:
        self.facts, self.predicates, self.code = facts, predicates, predicates.code
        self.lines: list[str] = []
        self.kept: list[list[ast.stmt]] = []
        """What fills the holes of the lines."""
        self.evaluated: list[ast.expr] = []
        """What is computed whatever the tests decide."""
        self.changes = False
        """Is something changed in place where a test holds?"""
        self._bound: set[str] = set()
        """Names that were bound so far."""
        self._chosen: set[str] = set()
        """Those of them that were bound where a test holds."""
        self._given: dict[ast.stmt, tuple[str, ast.expr]] = {}
        """Statements of which a value alone is left, with the name that it gets."""
        self._results: list[str] = []
        """The names of what is returned."""
        self._returns: tuple[type[ast.Tuple] | None, int] | None = None
        """The form of what is returned: of how many items, and whether these are a tuple."""

    def run(self, statement: ast.If, behind: Sequence[ast.stmt]) -> None:
        """Takes in a branch, and what stands behind it where that belongs to a side of it."""
        static, tests = split(self.facts, statement.test)
        if not tests or (static and (statement.orelse or behind)):
            raise NotATensorError("the test is not about tensors alone")
        _binds_nothing(statement.test)
        text, place = self.predicates.all_of(tests), _Place("")
        if static:
            self.lines.append(f"if {' and '.join(self.code.operand(s) for s in static)}:")
            place = place._replace(indent="    ")
        if not keeps(self.facts, tests, text):
            text = f"{text}.clone()"
        self._sides(statement, behind, place, text)
        if self._results:
            last = "," if self._returns == (ast.Tuple, 1) else ""
            self.lines.append(f"{place.indent}return {', '.join(self._results)}{last}")

    def _sides(self, statement: ast.If, rest: Sequence[ast.stmt], place: _Place, test: str) -> None:
        """Both sides of a branch on a tensor, each with what follows it alone."""
        body, orelse = _with_rest(statement, rest)
        added = self._added(statement, body, orelse) if not place.holds else None
        holds = self._named(f"{place.holds} & {test}" if place.holds else test, place)
        self._block(body, place.under(holds, statement))
        if orelse:
            fails = self._named(f"{place.holds} & ~{holds}" if place.holds else f"~{holds}", place)
            self._block(orelse, place.under(fails, statement))
        if added is not None:
            self.lines.append(f"{place.indent}{added}")

    def _added(self, statement: ast.If, *sides: Sequence[ast.stmt]) -> str | None:
        """The statement that adds to a list behind a branch what either side adds to it once, if there is one."""
        calls = [[(s, *found) for s in side if (found := _append(s)) is not None] for side in sides]
        if any(len(found) != 1 for found in calls):
            return None
        (one, name, first), (two, other, second) = calls[0][0], calls[1][0]
        mentions = sum(isinstance(n, ast.Name) and n.id == name for n in nodes_in(statement))
        owner = self.facts.before(statement).get(name)
        if name != other or mentions != 2 or not (isinstance(owner, Container) and owner.kind == "list"):
            return None
        if not _has_one_name(self.facts, name):
            return None
        given = self._fresh("added")
        self._given |= {one: (given, first), two: (given, second)}
        return f"{name}.append({given})"

    def _named(self, text: str, place: _Place) -> str:
        name = self._fresh("condition")
        self.lines.append(f"{place.indent}{name} = {text}")
        return name

    def _fresh(self, wanted: str) -> str:
        name = fresh(self.facts, wanted, self.predicates.taken)
        self.predicates.taken.append(name)
        return name

    def _block(self, statements: Sequence[ast.stmt], place: _Place) -> None:
        for i, statement in enumerate(statements):
            rest = statements[i + 1 :]
            match statement:
                case ast.Pass() | ast.Expr(value=ast.Constant()):
                    continue
                case _ if statement in self._given:
                    self._give(*self._given[statement], place)
                case ast.Return():
                    self._return(statement, place)
                    return
                case ast.If(test=test) if self._is_tensor(test) or may_return(statement):
                    _binds_nothing(test)
                    self.predicates.always([test])
                    partly = may_return(statement)
                    self._sides(statement, rest if partly else [], place, self.predicates.operand(test))
                    if partly:
                        return
                case ast.If(test=test, body=body, orelse=orelse):
                    self.evaluated.append(test)
                    self.lines.append(f"{place.indent}if {self.code.line(test)}:")
                    self._body(body, place.inside(statement))
                    if orelse:
                        self.lines.append(f"{place.indent}else:")
                        self._body(orelse, place.inside(statement))
                case ast.For(target=target, iter=of, body=body, orelse=[]) if _is_plain(statement):
                    if any(self._lives(name, statement) for name in writes(target)):
                        raise NotSelectableError("the loop's variable is read elsewhere")
                    self.predicates.differences += run_through(self.facts, of)
                    self.evaluated.append(of)
                    self.lines.append(f"{place.indent}for {self.code.text(target)} in {self.code.line(of)}:")
                    self._body(body, place.inside(statement))
                case _ if isinstance(statement, _SIMPLE):
                    self._statement(statement, place)
                case _:
                    raise NotSelectableError(f"`{shortened(statement)}` cannot be asked about alone")

    def _body(self, statements: Sequence[ast.stmt], place: _Place) -> None:
        """A block of its own, which may not be empty."""
        before = len(self.lines)
        self._block(statements, place)
        if len(self.lines) == before:
            self.lines.append(f"{place.indent}pass")

    def _is_tensor(self, test: ast.expr) -> bool:
        """Does a test ask a tensor, or what becomes one as it is bound in a branch?"""
        return depends(self.facts, test) or not self._chosen.isdisjoint(reads(test))

    def _statement(self, statement: ast.stmt, place: _Place) -> None:
        """A simple statement: asked about, or run always where nobody misses what it binds over."""
        if not replaceable(self.facts, [statement]):
            raise NotSelectableError(f"`{shortened(statement)}` shares its line with another statement")
        names, value = writes(statement), self._bound_to_names(statement)
        always = value is not None and all(self._unmissed(name, place.around) for name in names)
        if always and value is not None:
            self.evaluated.append(value)
        self.lines += self._asked(HOLE.format(len(self.kept)), "" if always else place.holds, place.indent)
        self.kept.append([statement])
        inside = {id(node) for node in nodes_in(statement)}
        changed = any(id(node) in inside for node, _ in changes(self.facts))
        self.changes |= changed and isinstance(statement, (ast.Expr, ast.AugAssign))
        self._bound |= names
        self._chosen |= set() if always else names

    def _bound_to_names(self, statement: ast.stmt) -> ast.expr | None:
        """The value of an assignment to nothing but names, which has as many items as there are names."""
        match statement:
            case (
                ast.Assign(targets=[ast.Name()], value=value)
                | ast.AnnAssign(target=ast.Name(), value=ast.expr() as value)
            ):
                return value
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value) if all(
                isinstance(t, ast.Name) for t in targets
            ):
                known = self.facts.value(value)
                items = known.items if isinstance(known, Container) else None
                return value if items is not None and len(items) == len(targets) else None
        return None

    def _unmissed(self, name: str, around: Sequence[ast.stmt]) -> bool:
        """May a name be bound although its side is not taken: is neither its value from before read, nor one that
        another side has given it?
        """
        return all(
            not awaited(self.facts, name, statement)
            and (name not in self._bound or not alive(self.facts, name, statement))
            for statement in around
        )

    def _lives(self, name: str, statement: ast.stmt) -> bool:
        return awaited(self.facts, name, statement) or alive(self.facts, name, statement)

    def _return(self, statement: ast.Return, place: _Place) -> None:
        """What is returned gets a name, each item of a tuple its own."""
        value = statement.value
        if any(isinstance(around, (ast.For, ast.While)) for around in place.around):
            raise NotSelectableError("a loop is left by `return`")
        items = value.elts if isinstance(value, ast.Tuple) else [value] if value is not None else []
        if any(isinstance(item, (ast.Starred, ast.Constant)) for item in items):
            raise NotSelectableError("what one side returns is no tensor")
        form = type(value) if isinstance(value, ast.Tuple) else None, len(items)
        if self._returns is None:
            self._returns = form
            self._results = [self._fresh("result") for _ in items]
        if form != self._returns:
            raise NotSelectableError("the sides return different tuples")
        for name, item in zip(self._results, items, strict=True):
            self._give(name, item, place)

    def _give(self, name: str, value: ast.expr, place: _Place) -> None:
        """Gives a new name a value: the first one always."""
        first = name not in self._bound
        self._bound.add(name)
        self.evaluated += [value] if first else []
        self.lines += self._asked(f"{name} = {self.code.line(value)}", "" if first else place.holds, place.indent)

    def _asked(self, line: str, holds: str, indent: str) -> list[str]:
        return [f"{indent}if {holds}:", f"{indent}    {line}"] if holds else [f"{indent}{line}"]


def _with_rest(statement: ast.If, rest: Sequence[ast.stmt]) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The sides of a branch, with what stands behind it in the one that goes on."""
    body, orelse = [*statement.body], [*statement.orelse]
    if not rest:
        return body, orelse
    if not returns(body) and not returns(orelse):
        raise NotSelectableError("a path returns from inside a branch that goes on")
    return (body, [*orelse, *rest]) if returns(body) else ([*body, *rest], orelse)


def _append(statement: ast.stmt) -> tuple[str, ast.expr] | None:
    """The list and the value of `xs.append(value)`."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value])):
            return name, value
    return None


def _has_one_name(facts: FunctionFacts, name: str) -> bool:
    """Is what a name is bound to, once, never given to another name, a container, or code that may keep it?"""
    if stores(facts, name) != 1:
        return False
    for node in nodes_in(facts.function):
        if not (isinstance(node, ast.Name) and node.id == name):
            continue
        match facts.parent(node):
            case ast.Assign(targets=[_]) | ast.AnnAssign() | ast.Tuple() if isinstance(node.ctx, ast.Store):
                pass
            case ast.Attribute() | ast.Subscript() | ast.For() | ast.Return() | ast.If() | ast.UnaryOp():
                pass
            case ast.Tuple() as display if isinstance(facts.parent(display), ast.Return):
                pass
            case ast.Call(func=function) if (qualified(facts, function) or "").startswith(("torch.", "builtins.")):
                pass
            case _:
                return False
    return True


def _binds_nothing(test: ast.expr) -> None:
    if writes(test):
        raise NotSelectableError("the test binds a name")


def _is_plain(loop: ast.For) -> bool:
    """Is a loop not left early, and binds it names alone?"""
    names = not any(isinstance(n, (ast.Attribute, ast.Subscript)) for n in nodes_in(loop.target))
    return names and not any(isinstance(n, _LEAVES) for n in nodes_in(loop))

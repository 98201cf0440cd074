"""Write the body of a function of the file in the place of its call.

Before:
    def picked(x, mask):
        return x[mask], mask.sum()

    values, count = picked(x, x > 0)
    return values.sum() / count

After:
    mask = x > 0
    values, count = x[mask], mask.sum()
    return values.sum() / count

Legal when:
    the function is the one in sight whatever is called, calls nothing that may tell in which function it stands (as
    what logs or warns does), has one end, and no names that mean something else where it is called; arguments are given
    their names in their order, and what else the statement evaluates before the call only computes. The function itself
    stays, for its other calls. Where a finding stands in it, all its calls in traced code are written so; of a branch,
    the calls that are steps of its sides and do more than compute.

Differs in:
    nothing; a method is taken to be the one in sight. It is written for the mends of code that stands together, and
    stays where they remove the break.
"""

from __future__ import annotations

import ast
import builtins
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.program.entities import Function
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code, shortened
from graphmend.transforms.code.liveness import fresh, locals_of, parameters, stored, writes
from graphmend.transforms.code.positions import begins_line
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.code.text_edits import insert_before, replace_expression, replace_statements
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.branch_statement import branch
from graphmend.transforms.if_conversion.value_tests import depends
from graphmend.transforms.legality.effects import effects, is_layer
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.outside.pure_bodies import only_computes
from graphmend.transforms.legality.own_functions import computes, is_still_named, is_the_one, makes_record
from graphmend.transforms.legality.speculation import repeatable
from graphmend.transforms.questions import take_for_granted
from graphmend.transforms.rewrites.answers import asks, prepare, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "body_of_call"
_LONGEST, _MOST_CALLS = 12, 3
_OWN_NAMES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
#: what gives names that are no expressions, leaves early, or may not be evaluated
_NOT_PLAIN = (
    *(*_OWN_NAMES, ast.Match, ast.Try, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom),
    *(ast.Yield, ast.YieldFrom, ast.Await),
)
#: what means something else in another function
_OF_ITS_PLACE = frozenset({"super", "locals", "globals", "vars", "dir", "eval", "exec", "__class__"})
_MAYBE = (ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda, ast.JoinedStr)


class NotInlinedError(Exception):
    """A body cannot stand in the place of a call; the message is the sentence to refuse with."""


class Call(NamedTuple):
    """A call, with the facts where it stands and what is called."""

    facts: FunctionFacts
    node: ast.Call
    function: Function
    definition: ast.FunctionDef


@asks("effects", "names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    refusal: Refusal | None = None
    for find in (_of_argument, _of_sides, _of_function):
        try:
            if calls := find(facts):
                return _written(facts, calls)
        except NotInlinedError as error:
            refusal = refusal or refuse(NAME, str(error))
    return refusal


def _written(facts: FunctionFacts, calls: list[Call]) -> Fix:
    for call in calls:
        _check(call)
    if len({_statement(call) for call in calls}) < len(calls):
        raise NotInlinedError(f"`{calls[0].definition.name}` is called twice in a statement")
    taken: list[str] = []
    texts = [_Inlining(call, taken) for call in calls]

    def make() -> list[TextEdit]:
        return [edit for each in texts for edit in each.edits()]

    return prepare(NAME, f"write the body of `{calls[0].definition.name}` in the place of its call", facts, make)


def _of_argument(facts: FunctionFacts) -> list[Call]:
    """The call that is given what the finding is about."""
    if not isinstance(facts.node, ast.expr):
        return []
    for above in facts.ancestors(facts.node):
        if isinstance(above, ast.stmt):
            break
        if isinstance(above, ast.Call) and (found := _called(facts, above)) is not None:
            return [found]
    return []


def _of_function(facts: FunctionFacts) -> list[Call]:
    """All calls in traced code of the function that the finding stands in."""
    found: list[Call] = []
    for caller in facts.calls():
        call = _called(caller, caller.node) if isinstance(caller.node, ast.Call) else None
        if call is None or call.definition is not facts.function or caller.source is not facts.source:
            return []
        found.append(call)
    if len(found) > _MOST_CALLS:
        raise NotInlinedError(f"`{facts.function.name}` is called at more places")
    return found


def _of_sides(facts: FunctionFacts) -> list[Call]:
    """The calls that are steps of the branch that the finding is about, and do more than compute."""
    statement = branch(facts)
    if statement is None or not depends(facts, statement.test):
        return []
    found: list[Call] = []
    for step in (n for s in (*statement.body, *statement.orelse) for n in nodes_in(s) if isinstance(n, ast.stmt)):
        node = statement_value(step)
        if isinstance(node, ast.Call) and effects(facts, node) and (call := _called(facts, node)) is not None:
            found.append(call)
    return found


def _called(facts: FunctionFacts, node: ast.Call) -> Call | None:
    """A call of a function, or of a method, of the file that is known for certain."""
    function = facts.value(node.func)
    if not isinstance(function, Function) or function.info.module.source.path != facts.source.path:
        return None
    definition = function.info.node
    if not isinstance(definition, ast.FunctionDef) or definition is facts.function or definition.decorator_list:
        return None
    if not is_still_named(facts, node.func):
        return None
    if function.bound is not None:
        plain = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
        if not plain or not is_the_one(function, facts.source.tree):
            return None
        take_for_granted(f"`{ast.unparse(node.func)}` is taken to be the method in sight, overridden nowhere else")
    elif not isinstance(node.func, ast.Name):
        return None
    return Call(facts, node, function, definition)


def _check(call: Call) -> None:
    """May the body stand where the call stands?"""
    facts, definition = call.facts, call.definition
    name, body = definition.name, _body(definition)
    nodes = [n for statement in body for n in nodes_in(statement)]
    statement = _statement(call)
    if len([n for n in nodes if isinstance(n, ast.stmt)]) > _LONGEST:
        raise NotInlinedError(f"`{name}` is long")
    ends = [n for n in nodes if isinstance(n, ast.Return)]
    if any(isinstance(n, _NOT_PLAIN) for n in nodes) or len(ends) > 1 or (ends and ends[0] is not body[-1]):
        raise NotInlinedError(f"`{name}` has several ends, or names of its own inside")
    gives = bool(ends) and ends[0].value is not None
    if not gives and not (isinstance(statement, ast.Expr) and statement.value is call.node):
        raise NotInlinedError(f"`{name}` does not end with what it gives")
    if any(isinstance(n, ast.Name) and n.id == name for n in nodes) or _in_texts(definition, nodes):
        raise NotInlinedError(f"`{name}` calls itself, or writes names into texts")
    if any(isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)) for n in nodes_in(call.node)):
        raise NotInlinedError(f"an argument of `{name}` binds a name")
    own = {*locals_of(definition), *parameters(definition)}
    free = {n.id for n in nodes if isinstance(n, ast.Name)} - own
    private = {
        n.attr for n in nodes if isinstance(n, ast.Attribute) and n.attr.startswith("__") and n.attr[-2:] != "__"
    }
    if private or free & _OF_ITS_PLACE:
        raise NotInlinedError(f"`{name}` says what means something else where it is called")
    if taken := free & {*locals_of(facts.function), *parameters(facts.function)}:
        raise NotInlinedError(f"`{min(taken)}` is another name where `{name}` is called")
    tree = facts.source.tree
    assert tree is not None
    outer: list[ast.Module | ast.ClassDef] = [tree, *(n for n in tree.body if isinstance(n, ast.ClassDef))]
    if not all(any(f in scope.body for scope in outer) for f in (facts.function, definition)):
        raise NotInlinedError(f"`{name}`, or who calls it, is defined inside a function")
    if not begins_line(facts.source, statement):
        raise NotInlinedError("the statement shares its line with another one")
    if not only_computes(call.function.info) and (caller := _may_tell(facts.within(definition), nodes)) is not None:
        raise NotInlinedError(f"`{shortened(caller)}` in `{name}` may tell which function runs")
    if statement_value(statement) is call.node:
        return
    within = {*nodes_in(call.node), *facts.ancestors(call.node)}
    value = statement_value(statement)
    others = [n for n in nodes_in(value) if n not in within] if value is not None else []
    if any(isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield)) for n in others):
        raise NotInlinedError(f"what stands beside the call of `{name}` is evaluated before it")
    if not all(repeatable(facts, n) for n in others if isinstance(n, ast.Call)):
        raise NotInlinedError(f"what stands beside the call of `{name}` does more than compute")


def _may_tell(facts: FunctionFacts, nodes: list[ast.AST]) -> ast.expr | None:
    """What may look at the function that it stands in, such as what logs or warns: a record has its name."""
    for node in nodes:
        if isinstance(node, ast.Call):
            folder, _, last = (qualified(facts, node.func) or "").rpartition(".")
            torchs = folder in (*known.FUNCTIONAL, "math") or (folder == "builtins" and last not in _OF_ITS_PLACE)
            if not (torchs or is_layer(facts, node.func) or computes(facts, node) or makes_record(facts, node)):
                return node.func
    return None


def statement_value(statement: ast.stmt) -> ast.expr | None:
    """What a statement evaluates first, once."""
    match statement:
        case ast.Assign(value=value) | ast.AnnAssign(value=value) | ast.Return(value=value) | ast.Expr(value=value):
            return value
        case ast.AugAssign(target=ast.Name(), value=value) | ast.For(iter=value):
            return value
    return None


def _statement(call: Call) -> ast.stmt:
    """The statement that evaluates the call, each time that it runs."""
    child: ast.AST = call.node
    for above in call.facts.ancestors(call.node):
        if isinstance(above, ast.stmt):
            if statement_value(above) is not child:
                raise NotInlinedError(f"the call of `{call.definition.name}` is no plain part of a statement")
            return above
        if isinstance(above, _MAYBE):
            raise NotInlinedError(f"the call of `{call.definition.name}` may not be evaluated, or more than once")
        child = above
    raise NotInlinedError(f"the call of `{call.definition.name}` stands outside of functions")


def _body(definition: ast.FunctionDef) -> list[ast.stmt]:
    first = definition.body[0]
    docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(definition.body) > 1
    return definition.body[1:] if docstring else definition.body


def _in_texts(definition: ast.FunctionDef, nodes: list[ast.AST]) -> bool:
    """Are names written into texts, or do texts span lines? Before Python 3.12 places in f-strings are not known."""
    own = {*locals_of(definition), *parameters(definition)}
    written = [n for text in nodes if isinstance(text, ast.JoinedStr) for n in nodes_in(text)]
    spans = [n for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str) and n.end_lineno != n.lineno]
    return bool(spans) or any(isinstance(n, ast.Name) and n.id in own for n in written)


class _Inlining:
    """The texts of one call: what stands in front of its statement, and in its place."""

    def __init__(self, call: Call, taken: list[str]) -> None:
        """`taken` are names that other calls need, to which those of this one are added."""
        self._call = call
        facts, definition = call.facts, call.definition
        code, body = Code(facts.source), _body(definition)
        nodes = [n for statement in body for n in nodes_in(statement)]
        bound = stored(body)
        own = {*locals_of(facts.function), *parameters(facts.function)}  # which what is called cannot bind anew
        self._lines: list[str] = []
        names: dict[str, str] = {}
        for name, argument in _arguments(call):
            plain = isinstance(argument, ast.Constant) or (isinstance(argument, ast.Name) and argument.id in own)
            if plain and name not in bound:
                names[name] = code.operand(argument)
            else:
                taken.append(_unused(facts, name, taken))
                names[name] = taken[-1]
                self._lines.append(f"{names[name]} = {code.line(argument)}\n")
        for name in sorted(bound - names.keys()):
            taken.append(_unused(facts, name, taken))
            names[name] = taken[-1]
        replace: dict[ast.expr, str] = {n: names[n.id] for n in nodes if isinstance(n, ast.Name) and n.id in names}
        last = body[-1] if isinstance(body[-1], ast.Return) else None
        for step in body[: len(body) - (last is not None)]:
            indent = " " * facts.source.span(step).column
            self._lines.append(textwrap.dedent(indent + code.text(step, replace)) + "\n")
        self._result = ""
        if last is None or last.value is None:
            return
        whole = statement_value(_statement(call)) is call.node
        self._result = code.line(last.value, replace) if whole else code.operand(last.value, replace)

    def edits(self) -> Iterator[TextEdit]:
        source, statement = self._call.facts.source, _statement(self._call)
        if not self._result:
            yield replace_statements(source, [statement], "".join(self._lines) or "pass\n")
            return
        if self._lines:
            yield insert_before(source, statement, "".join(self._lines))
        yield replace_expression(source, self._call.node, self._result)


def _unused(facts: FunctionFacts, name: str, taken: list[str]) -> str:
    """A name as it is, where nothing in the function, the module or Python has it."""
    tree = facts.source.tree
    here = {n.id for n in nodes_in(facts.function) if isinstance(n, ast.Name)} | {*parameters(facts.function), *taken}
    outer = {*facts.names, *dir(builtins), *(writes(*tree.body) if tree is not None else ())}
    return name if name not in here | outer else fresh(facts, name, taken)


def _arguments(call: Call) -> list[tuple[str, ast.expr]]:
    """The parameters with what they are given, in the order in which that is evaluated."""
    node, arguments = call.node, call.definition.args
    if arguments.vararg or arguments.kwarg or any(isinstance(a, ast.Starred) for a in node.args):
        raise NotInlinedError(f"`{call.definition.name}` is given arguments otherwise")
    plain = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    given: list[tuple[str, ast.expr]] = []
    if call.function.bound is not None and isinstance(node.func, ast.Attribute):
        given.append((plain.pop(0), node.func.value))
    given += zip(plain, node.args, strict=False)
    given += [(k.arg or "", k.value) for k in node.keywords]
    defaults: dict[str, ast.expr | None] = dict(
        zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults, strict=False)
    )
    defaults |= {a.arg: d for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)}
    known = {name for name, _ in given}
    for name in (*plain, *(a.arg for a in arguments.kwonlyargs)):
        if name not in known:
            default = defaults.get(name)
            if not isinstance(default, ast.Constant):
                raise NotInlinedError(f"`{name}` of `{call.definition.name}` has a default that is made once")
            given.append((name, default))
    if len({name for name, _ in given}) != len(given) or len(node.args) > len(plain):
        raise NotInlinedError(f"`{call.definition.name}` is given arguments otherwise")
    return given

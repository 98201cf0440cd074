"""Emit output that depends on a tensor: the condition goes along, and eager code asks it.

Before:
    if y.sum() > 0:
        print("positive", y)

After:
    graphmend.runtime.emit_if(y.sum() > 0, print, "positive", y)

Legal when:
    a side begins with output calls (print, logging, warnings), emitted already or not, or with branches that do
    nothing else, whose arguments and tests only compute; between them names may be bound that nothing else binds. What
    stands behind them stays in the branch, to be mended next. What follows a branch that always returns counts as its
    other side.

Differs in:
    the arguments are computed even when nothing is written.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import stores
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import awaited, fresh, parameters
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.code.text_edits import HOLE, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.branch_statement import branch, returns
from graphmend.transforms.if_conversion.tensor_predicates import NotATensorError, Predicates
from graphmend.transforms.if_conversion.value_tests import split
from graphmend.transforms.legality.numbers.put_off import NotCarriedError, at_once, deferred
from graphmend.transforms.legality.speculation import speculate
from graphmend.transforms.rewrites.answers import asks, offer, refuse
from graphmend.transforms.rewrites.output.emit import ATTRIBUTED, attributed, attributed_inside

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "conditional_output"
_RUNTIME = "graphmend.runtime"
_LEVELS = ["debug", "info", "warning", "warn", "error", "critical", "log", "warning_once", "warning_advice"]


@asks("effects", "totality", "memory", "order", "numbers", "gradients", "context", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = branch(facts)
    if statement is None:
        return None
    static, tests = split(facts, statement.test)
    behind = [] if static else _behind(facts, statement)
    if not (behind or any(_begins(facts, side, statement) for side in (statement.body, statement.orelse))):
        return None
    if not tests or (static and statement.orelse):
        return refuse(NAME, "the test is not about tensors alone")
    old = [statement, *behind]
    if not replaceable(facts, old):
        return refuse(NAME, "the statement shares its line with another one")
    imports = Imports(facts)
    predicates = Predicates(facts, imports)
    try:
        test = predicates.all_of(tests)
        text, rest = _Emitting(finding, facts, predicates, statement).converted([*statement.orelse, *behind], test)
        if static:  # what is known while tracing stays a branch
            head = " and ".join(predicates.code.operand(s) for s in static)
            text = f"if {head}:\n" + "".join(f"    {line}\n" for line in text.splitlines())
    except NotATensorError as error:
        return refuse(NAME, str(error))
    except NotCarriedError as error:
        return refuse(NAME, f"`{error}` breaks the graph before the output happens")

    def make() -> list[TextEdit]:
        return [*imports.edits(), replace_statements(facts.source, old, text, *rest)]

    title = "emit the output from inside the graph (graphmend.runtime), nothing lost"
    return offer(NAME, title, facts, make, predicates.differences)


def _behind(facts: FunctionFacts, statement: ast.If) -> list[ast.stmt]:
    """The output behind a branch that always returns: it belongs to the other side."""
    if statement.orelse or not returns(statement.body):
        return []
    block = facts.body_of(statement)
    behind = block[block.index(statement) + 1 :]
    return behind[: _begins(facts, behind, statement)]


def _begins(facts: FunctionFacts, statements: list[ast.stmt], branch: ast.stmt) -> int:
    """With how many statements a block of a branch begins that are output, branches that do nothing else, and what is
    computed for these under names of its own.
    """
    count = 0
    for i, statement in enumerate(statements):
        if _output(facts, statement) is not None or _only_output(facts, statement):
            count = i + 1
        elif _own_name(facts, statement, branch) is None:
            break
    return count


def _own_name(facts: FunctionFacts, statement: ast.stmt, branch: ast.stmt) -> ast.expr | None:
    """What a name is bound to that has no other binding in the function, and that may be computed where nobody reads
    it: also when the branch is reached again, what the name was is not read.
    """
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            nodes = nodes_in(facts.function)
            outside = any(isinstance(n, (ast.Global, ast.Nonlocal)) and name in n.names for n in nodes)
            own = stores(facts, name) == 1 and not outside and name not in parameters(facts.function)
            own = own and not awaited(facts, name, branch)
            return value if own and not speculate(facts, value).blockers else None
    return None


def _only_output(facts: FunctionFacts, statement: ast.stmt) -> bool:
    """Is a statement a branch on tensors that does nothing but output?"""
    if not isinstance(statement, ast.If) or split(facts, statement.test)[0]:
        return False
    inside = [*statement.body, *statement.orelse]
    return all(_output(facts, s) is not None or _only_output(facts, s) for s in inside)


def _output(facts: FunctionFacts, statement: ast.stmt) -> ast.Call | None:
    """The output call that is a statement, as it is written or emitted already."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return None
    if _asks(facts, call) is not None:
        return call
    written = _written(facts, call)
    return call if written is not call or is_output(facts, call) else None


def _asks(facts: FunctionFacts, call: ast.Call) -> ast.expr | None:
    """The condition of output that is emitted under one already."""
    name = qualified(facts, call.func)
    known = name in (f"{_RUNTIME}.emit_if", f"{_RUNTIME}.emit_when") and call.args
    return call.args[0] if known and not isinstance(call.args[0], ast.Starred) else None


def _written(facts: FunctionFacts, call: ast.Call) -> ast.Call:
    """The call that `emit` makes, where a call is one of `emit`."""
    if qualified(facts, call.func) != f"{_RUNTIME}.emit" or not call.args or isinstance(call.args[0], ast.Starred):
        return call
    return ast.copy_location(ast.Call(call.args[0], call.args[1:], call.keywords), call)


class _Emitting:
    """Writes the output of a branch without the branch."""

    def __init__(self, finding: Finding, facts: FunctionFacts, predicates: Predicates, branch: ast.If) -> None:
        self.finding, self.facts, self.predicates, self.branch = finding, facts, predicates, branch
        self.emit = predicates.imports.name(f"{_RUNTIME}.emit_if", _RUNTIME)
        self.lines: list[str] = []

    def converted(self, otherwise: list[ast.stmt], test: str) -> tuple[str, list[list[ast.stmt]]]:
        """The new text, and the statements that stay in a branch."""
        statement = self.branch
        alone = len(statement.body) == 1 and not otherwise and _output(self.facts, statement.body[0])
        condition = test if alone else self._named(test)
        taken, other = self._block(statement.body, condition), self._block(otherwise, f"~{condition}")
        if taken:
            self.lines += [f"if {condition}:", f"    {HOLE.format(0)}"]
            self.lines += ["else:", f"    {HOLE.format(1)}"] if other else []
        elif other:
            self.lines += [f"if ~{condition}:", f"    {HOLE.format(0)}"]
        return "\n".join(self.lines) + "\n", [rest for rest in (taken, other) if rest]

    def _named(self, test: str) -> str:
        name = fresh(self.facts, "condition", self.predicates.taken)
        self.predicates.taken.append(name)
        self.lines.append(f"{name} = {test}")
        return name

    def _block(self, statements: list[ast.stmt], holds: str) -> list[ast.stmt]:
        """Writes the output that a block begins with; returns what stands behind it."""
        count = _begins(self.facts, statements, self.branch)
        for statement in statements[:count]:
            if call := _output(self.facts, statement):
                self.lines.append(self._emitted(call, holds))
            elif (value := _own_name(self.facts, statement, self.branch)) is not None:
                self._compute([value])
                self.lines.append(self.predicates.code.text(statement))
            elif isinstance(statement, ast.If):
                self._compute([statement.test])
                inner = self._named(f"{holds} & {self.predicates.operand(statement.test)}")
                self._block(statement.body, inner)
                if statement.orelse:
                    self._block(statement.orelse, self._named(f"{holds} & ~{inner}"))
        return statements[count:]

    def _emitted(self, call: ast.Call, condition: str) -> str:
        if (asked := _asks(self.facts, call)) is not None:
            self._compute([asked, *(n for n in call.args[1:] if not isinstance(n, ast.Lambda))])
            return self.predicates.code.text(call, {asked: f"{condition} & {self.predicates.operand(asked)}"})
        call = _written(self.facts, call)
        if not is_output(self.facts, call):
            self._compute([call.func])  # looked up whether the branch is taken or not
        if attributed(self.facts, call):
            if not attributed_inside(self.finding, self.facts, call):
                raise NotATensorError(ATTRIBUTED.says)
            self.predicates.differences.append(ATTRIBUTED)
        put_off = deferred(call, self.facts, self.predicates.imports)
        code = self.predicates.code
        named = [k.value for k in call.keywords]
        whole = any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)
        whole = whole or any(node in put_off for node in named)
        late = [node for node in (*call.args, *named) if node in put_off or _puts_off(self.facts, node)]
        fails = any(not _is_always_had(self.facts, node) for node in late)
        if whole and fails:
            raise NotATensorError("what it writes is taken out of tensors, which may fail where nothing is written")
        self._compute(named)
        keywords = [
            f"{k.arg}={code.argument(k.value, put_off)}" if k.arg else f"**{code.operand(k.value)}"
            for k in call.keywords
        ]
        if self._compute(call.args, lazily=not whole) or fails:
            made = "".join(f"{code.argument(node, put_off)}, " for node in call.args)
            made = made.rstrip(" ") if len(call.args) == 1 else made.removesuffix(", ")
            emit = self.predicates.imports.name(f"{_RUNTIME}.emit_when", _RUNTIME)
            return f"{emit}({', '.join([condition, code.text(call.func), f'lambda: ({made})', *keywords])})"
        arguments = [condition, code.text(call.func)]
        for node in call.args:
            arguments.append(code.text(node) if isinstance(node, ast.Starred) else code.argument(node, put_off))
        return f"{self.emit}({', '.join([*arguments, *keywords])})"

    def _compute(self, nodes: list[ast.expr], *, lazily: bool = False) -> bool:
        """Evaluates expressions although the branch may not be taken; whether plain Python has to be kept from that,
        which it can be where they are made `lazily`. What is taken out of tensors is so when the output happens."""
        found = speculate(self.facts, *(part for node in nodes for part in at_once(self.facts, node)))
        if found.blockers:
            raise NotATensorError(found.blockers[0])
        said = (Difference(d.kind, f"while compiled, {d.says}") if lazily else d for d in found.differences)
        self.predicates.differences += said
        return lazily and bool(found.differences)


def _puts_off(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is a part of an argument made when the output happens?"""
    return any(qualified(facts, n.func) == f"{_RUNTIME}.later" for n in nodes_in(node) if isinstance(n, ast.Call))


def _is_always_had(facts: FunctionFacts, node: ast.expr) -> bool:
    """Can a number or text never fail to be made: the number in a tensor without dimensions, and texts of such?"""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr="item"), args=[], keywords=[]):
            return _is_number(facts, value)
        case ast.Call(func=function, args=[ast.Attribute(value=value, attr="item")], keywords=[]):
            return qualified(facts, function) == f"{_RUNTIME}.later" and _is_number(facts, value)
        case ast.JoinedStr(values=parts):
            return all(_is_always_had(facts, part) for part in parts)
        case ast.FormattedValue(value=value, format_spec=None):
            return isinstance(facts.value(value), Tensor) or _is_always_had(facts, value)
        case ast.FormattedValue(value=value, format_spec=ast.JoinedStr(values=[ast.Constant(value=str(spec))])):
            return _FOR_NUMBERS.fullmatch(spec) is not None and _is_always_had(facts, value)
    return isinstance(node, ast.Constant)


def _is_number(facts: FunctionFacts, node: ast.expr) -> bool:
    tensor = facts.value(node)
    return isinstance(tensor, Tensor) and tensor.rank == 0


#: how any number can be written
_FOR_NUMBERS = re.compile(r"[<>^]?[-+ ]?([1-9]\d*)?,?(\.\d+)?[eEfFgG]")


def is_output(facts: FunctionFacts, call: ast.Call) -> bool:
    """Is a call one of print, logging and warnings?"""
    name = qualified(facts, call.func) or ""
    return name in ("builtins.print", "warnings.warn") or (
        name.startswith("logging.") and name.rpartition(".")[2] in _LEVELS
    )

"""Abstract interpretation of one function body: an environment in; events, and the value of the call, out.

Statements are followed as TorchDynamo would trace them: of a branch whose condition is known one side is walked, of any
other both, and the environments are joined; a loop is walked to a fixed point. Expressions are evaluated in
`expressions.py`, calls in the folder `calls`, conditions in `operations/conditions.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from graphmend.analysis.interpreter.calls.dispatch import apply
from graphmend.analysis.interpreter.calls.external import external
from graphmend.analysis.interpreter.events import Define, Event, Operation, Raise, Situation
from graphmend.analysis.interpreter.operations import errors
from graphmend.analysis.interpreter.operations.conditions import condition
from graphmend.analysis.interpreter.operations.objects import returned
from graphmend.analysis.interpreter.operations.operators import binary
from graphmend.analysis.interpreter.operations.subscripts import element_of
from graphmend.analysis.interpreter.walk.assignment import assign, bind, delete, measure
from graphmend.analysis.interpreter.walk.contexts import enter_context, leave_contexts
from graphmend.analysis.interpreter.walk.expressions import EVALUATE
from graphmend.analysis.interpreter.walk.patterns import matched
from graphmend.analysis.interpreter.walk.restoring import Restoring
from graphmend.analysis.lattice.arguments import Arguments, Keywords
from graphmend.analysis.lattice.environment import Environment, behind_break, filled_in, merge, same
from graphmend.analysis.lattice.external import ExternalInstance, ManagedContext
from graphmend.analysis.lattice.values import UNKNOWN, Choice, Const, Container, Value, join_all
from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo
from graphmend.analysis.program.entities import Class, Function
from graphmend.analysis.region.dynamo_config import decorated_mode
from graphmend.analysis.resolution.names import resolve
from graphmend.analysis.syntax.nodes import dotted
from graphmend.analysis.syntax.traversal import walk

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Host

#: a loop's body is walked at most this often; values only ever climb, and what has not settled then becomes UNKNOWN
_ROUNDS = 3
#: loops within loops that are walked more than once: each round of one is as many of all that it holds
_NESTED = 4


class Walker:
    """The walk of `info` for one environment: local names, and dotted paths such as `self.x`, with their values."""

    def __init__(
        self, session: Host, info: FunctionInfo, env: Environment, closure: Mapping[str, Value] | None, depth: int
    ) -> None:
        self.session = session
        self.info = info
        self.module = info.module
        self.env = env
        self.closure = closure
        self.depth = depth
        self.situation = Situation()
        self.statement: ast.stmt | None = info.node if isinstance(info.node, ast.stmt) else None
        self.returns: list[Value] = []
        self.yields: list[Value] = []
        self.silent = 0
        self.unrolled = 0
        """How many enclosing comprehensions are evaluated item by item."""
        self.resumed = 0
        """How many graph breaks the walk has passed."""
        self.path_ends: set[str] = set()
        """The last names of all dotted paths that `env` may hold."""
        self.lazy: dict[str, list[ast.expr] | Value] = {}
        """Locals that are evaluated on demand: the expressions that are assigned to them, or their value once that was
        asked for."""
        self._loops: list[tuple[list[Environment], list[Environment]]] = []

    @property
    def always(self) -> bool:
        """Whether every run reaches the current statement."""
        return not self.situation.conditional and not self.returns

    # -- expressions and events

    def restoring(self) -> Restoring:
        """A context manager that restores the situation at its end and, behind an exception, the environment."""
        return Restoring(self)

    def eval(self, node: ast.expr) -> Value:
        return EVALUATE[node.__class__](self, node)

    def emit(self, kind: type[Event], node: ast.expr | ast.stmt, *details: Any) -> None:
        """Emit an event at `node` to the rules; `details` are the fields of that kind of event."""
        if not self.silent and self.statement is not None:
            self.session.judge(self, kind, node, details)

    def apply(self, callee: Value, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """The value of `callee(*args, **keywords)`."""
        return apply(self, callee, args, keywords, node)

    def external(self, name: str, receiver: Value | None, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """The value of a call of a function without available source."""
        return external(self, name, receiver, args, keywords, node)

    def resume(self, always: bool = True) -> None:
        """Continue behind a graph break: tensors computed before it become inputs of the next graph (torch 2.13)."""
        self.resumed += 1
        self.env = behind_break(self.env, always)

    # -- statements

    def run(self, body: list[ast.stmt]) -> bool:
        """Walk a block; False where control never reaches its end."""
        outer = self.statement
        for statement in body:
            self.statement = statement
            if not self.step(statement):
                self.statement = outer
                return False
        self.statement = outer
        return True

    def step(self, statement: ast.stmt) -> bool:
        handler = _STATEMENTS.get(statement.__class__)
        return handler is None or handler(self, statement) is not False

    def fork(self, first: list[ast.stmt], yes: Environment, second: list[ast.stmt], no: Environment) -> bool:
        """Walk two alternatives and join their environments."""
        before = self.env
        with self.restoring():
            self.situation.conditional += 1
            self.env = {**before, **yes}
            falls_through = self.run(first)
            after = self.env
            self.env = {**before, **no}
            other_falls_through = self.run(second)
        if falls_through and other_falls_through:
            self.env = {**merge(after, self.env), **filled_in(before, yes, after), **filled_in(before, no, self.env)}
        elif falls_through:
            self.env = after
        return falls_through or other_falls_through

    def _if(self, node: ast.If) -> bool:
        guard = len(node.body) == 1 and isinstance(node.body[0], ast.Raise) and not node.orelse
        truth, yes, no = condition(self, node.test, "raise" if guard else "if")
        if truth is True:
            self.env.update(yes)
            return self.run(node.body)
        if truth is False:
            self.env.update(no)
            return self.run(node.orelse)
        return self.fork(node.body, yes, node.orelse, no)

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, enter: Callable[[], bool | None], kind: str) -> bool:
        """Walk a loop to its fixed point. `enter` binds the loop's targets, and returns whether there is an iteration:
        True, False, or None where that is not known."""
        endless = isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and bool(node.test.value)
        exits: list[Environment] = []
        with self.restoring():
            self.situation.blocks.append(kind)
            self.situation.conditional += 1
            for _ in range(_ROUNDS if len(self._loops) < _NESTED else 1):
                before = dict(self.env)
                breaks: list[Environment] = []
                self._loops.append((breaks, continues := []))
                try:
                    entered = enter()
                    if entered is not False and self.run(node.body):
                        continues.append(self.env)
                finally:
                    self._loops.pop()
                exits.extend(breaks)
                merged = before
                for env in continues:
                    merged = merge(merged, env)
                self.env = merged
                if entered is False or same(before, merged):
                    break
        falls_through = not endless and self.run(node.orelse)
        for env in exits:
            self.env = merge(self.env, env) if falls_through else env
            falls_through = True
        return falls_through

    def _for(self, node: ast.For | ast.AsyncFor) -> bool:
        over = self.eval(node.iter)
        element = element_of(self, over, node.iter)

        def enter() -> bool | None:
            assign(self, node.target, element)
            return False if isinstance(over, Container) and over.items == () and over.kind == "tuple" else None

        return self._loop(node, enter, "for")

    def _while(self, node: ast.While) -> bool:
        def enter() -> bool | None:
            # a break in the test leaves the loop's body to the graphs behind it: the frame is not lost (torch 2.13)
            self.situation.blocks.pop()
            truth, yes, _ = condition(self, node.test, "while")
            self.situation.blocks.append("while")
            self.env.update(yes)
            return truth

        return self._loop(node, enter, "while")

    def _break(self, node: ast.Break) -> bool:
        if self._loops:
            self._loops[-1][0].append(self.env)
        return False

    def _continue(self, node: ast.Continue) -> bool:
        if self._loops:
            self._loops[-1][1].append(self.env)
        return False

    def _with(self, node: ast.With | ast.AsyncWith) -> bool:
        if isinstance(node, ast.AsyncWith):
            self.emit(Operation, node, "async with", UNKNOWN)
        mode = decorated_mode(self.session.mode, self.module, (item.context_expr for item in node.items))
        with self.restoring():
            entered = []
            for item in node.items:
                entered.append(one := enter_context(self, item.context_expr))
                if one.gradients_off is not None:
                    self.situation.gradients_off = one.gradients_off
                if item.optional_vars is not None:
                    assign(self, item.optional_vars, one.bound)
            with self.session.within(mode):
                self.situation.blocks += ["with" for one in entered if not one.resumable]
                falls_through = self.run(node.body)
                leave_contexts(self, entered)
                return falls_through

    def _try(self, node: Any) -> bool:
        if not isinstance(node, ast.Try):
            self.emit(Operation, node.handlers[0].type, "except*", UNKNOWN)
        before = dict(self.env)
        raised = _raises(node.body)
        with self.restoring():
            self.situation.blocks.append("try")
            falls_through = self.run(node.body) and self.run(node.orelse)
            after = self.env
        # Dynamo traces a handler only when the exception is raised while tracing, which an explicit `raise` is the sign
        # of.
        for handler in node.handlers:
            if raised and handler.type is not None:
                self.emit(Operation, handler.type, "except", self.eval(handler.type))
            returned = len(self.returns)
            with self.restoring():
                self.situation.blocks.append("except")
                self.situation.conditional += 1
                self.silent += not raised
                self.env = merge(before, after)
                if handler.name:
                    self.env[handler.name] = ExternalInstance("builtins.Exception")
                if self.run(handler.body):
                    after = merge(after, self.env) if falls_through else self.env
                    falls_through = True
            if not raised and _only_probes(node.body):
                del self.returns[returned:]
        self.env = after
        return self.run(node.finalbody) and falls_through

    def _return(self, node: ast.Return) -> bool:
        value = self.eval(node.value) if node.value is not None else Const(None)
        if not self.depth and self.session.region.kind == "compiled":
            returned(self, node, value)
        self.returns.append(value)
        return False

    def _raise(self, node: ast.Raise) -> bool:
        if node.exc is not None:
            self.eval(node.exc)
        if not self.depth and self.always and not self.situation.blocks and self.session.region.kind == "compiled":
            self.emit(Raise, node)
        return False

    def _assert(self, node: ast.Assert) -> bool:
        before = dict(self.env)
        message = None
        if node.msg is not None:
            with self.restoring():
                self.silent += 1  # the message is built only when the assertion fails
                message = self.eval(node.msg)
        self.env = before
        truth, yes, _ = condition(self, node.test, "assert", message)
        self.env.update(yes)
        if truth is False and node.msg is not None and message is not None:
            self.emit(Operation, node, "assert", message)
        if truth is False and not self.depth and self.always and not self.situation.blocks:
            self.emit(Raise, node)
        return truth is not False

    def _assign(self, node: ast.Assign) -> None:
        value = self.eval(node.value)
        for target in node.targets:
            assign(self, target, value)
            if isinstance(target, ast.Tuple):
                measure(self, target, node.value)

    def _annotated(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            assign(self, node.target, self.eval(node.value))

    def _augmented(self, node: ast.AugAssign) -> None:
        old = self.eval(node.target)
        value = binary(self, node, node.op, old, self.eval(node.value))
        assign(self, node.target, value, augmented=True)

    def _expression(self, node: ast.Expr) -> None:
        self.eval(node.value)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        info = self.session.inner_function(node, self.info)
        for decorator in node.decorator_list:
            self.emit(Operation, decorator, "decorate", self.eval(decorator))
        closure = self.env if self.closure is None else {**self.closure, **self.env}
        self.env[node.name] = closure[node.name] = Function(info, closure=closure)

    def _class(self, node: ast.ClassDef) -> None:
        self.emit(Define, node)
        self.env[node.name] = Class(ClassInfo(node, self.module, self.info.qualname))

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        errors.imported(self, node)
        for name, qualified in self.module.imported(node).items():
            self.env[name] = resolve(self.session, qualified)

    def _match(self, node: ast.Match) -> bool:
        subject = self.eval(node.subject)
        before, ends, exhaustive = self.env, [], False
        path = dotted(node.subject)
        with self.restoring():
            self.situation.conditional += 1
            for case in node.cases:
                self.env = dict(before)
                match = matched(self, case.pattern, subject, node.subject)
                if path is not None and isinstance(subject, Choice):
                    bind(self, path, match.kept)
                truth: bool | None = True
                if match.fits is not False and case.guard is not None:
                    truth, yes, _ = condition(self, case.guard, "if")
                    self.env.update(yes)
                if match.fits is not False and truth is not False and self.run(case.body):
                    ends.append(self.env)
                if match.fits and truth:
                    exhaustive = True
                    break
                if case.guard is None:
                    subject = match.rest
        if not exhaustive:
            ends.append(dict(before))
        for i, env in enumerate(ends):
            self.env = merge(self.env, env) if i else env
        return bool(ends)

    @property
    def result(self) -> Value:
        """The value of the call: the join of all returns, or a generator of the join of all yields."""
        if self.yields:
            of = join_all(self.yields)
            managed = self.info.decorated_with("contextlib.contextmanager")
            return ManagedContext(of) if managed else Container("generator", of=of)
        return join_all(self.returns) if self.returns else Const(None)


def _raises(body: list[ast.stmt]) -> bool:
    return any(isinstance(n, ast.Raise) for s in body for n in walk(s))


def _only_probes(body: list[ast.stmt]) -> bool:
    """Whether the body of a `try` has an import: its handlers are for other installations."""
    return any(isinstance(s, (ast.Import, ast.ImportFrom)) for s in body)


_STATEMENTS: dict[type[ast.stmt], Callable[..., bool | None]] = {
    ast.If: Walker._if,
    ast.For: Walker._for,
    ast.AsyncFor: Walker._for,
    ast.While: Walker._while,
    ast.Break: Walker._break,
    ast.Continue: Walker._continue,
    ast.With: Walker._with,
    ast.AsyncWith: Walker._with,
    ast.Try: Walker._try,
    ast.Return: Walker._return,
    ast.Raise: Walker._raise,
    ast.Assert: Walker._assert,
    ast.Assign: Walker._assign,
    ast.AnnAssign: Walker._annotated,
    ast.AugAssign: Walker._augmented,
    ast.Expr: Walker._expression,
    ast.FunctionDef: Walker._function,
    ast.AsyncFunctionDef: Walker._function,
    ast.ClassDef: Walker._class,
    ast.Import: Walker._import,
    ast.ImportFrom: Walker._import,
    ast.Delete: delete,
    ast.Match: Walker._match,
}
if hasattr(ast, "TryStar"):  # Python 3.11
    _STATEMENTS[ast.TryStar] = Walker._try

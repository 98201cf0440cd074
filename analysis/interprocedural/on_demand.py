"""Evaluation on demand: single expressions, without walking the function around them. For globals, defaults, what
`__init__` assigns to `self`, what a compile site names.

It is no part of any walk: it emits no events, and functions are entered for their value alone.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING

from graphmend.analysis.interpreter.walk.statements import Walker
from graphmend.analysis.interprocedural.call_stack import DEEPEST
from graphmend.analysis.interprocedural.decorators import MODULE_SCOPE
from graphmend.analysis.lattice.values import NONE, UNKNOWN, Const, Value
from graphmend.analysis.program.definitions import Attribute, ClassInfo, FunctionInfo, ModuleInfo
from graphmend.analysis.program.entities import Function, Instance
from graphmend.analysis.resolution.instance_attributes import instance_attribute
from graphmend.analysis.resolution.parameters import example_arguments, parameters
from graphmend.analysis.syntax.nodes import growth, loop_variables, statements_of
from graphmend.analysis.syntax.traversal import walk

if TYPE_CHECKING:
    from graphmend.analysis.interprocedural.interface import Analysis


#: assignments to one local that are joined
_MOST_ALTERNATIVES = 5


def _bound(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """The names that a statement binds, or whose list it makes longer, each with an expression for the value."""
    if isinstance(statement, ast.For):
        yield from loop_variables(statement)
    elif (
        isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name)
    ):
        yield statement.targets[0].id, statement.value
    else:
        grown = growth(statement)
        if grown is not None and isinstance(grown[0], ast.Name):
            yield grown[0].id, grown[1] if grown[2] else _some_of(grown[1])


def _some_of(element: ast.expr) -> ast.expr:
    """An expression for a list of any number of such elements."""
    rounds = ast.comprehension(ast.Name("_", ast.Store()), ast.Name("...", ast.Load()), [], 0)
    return ast.fix_missing_locations(ast.copy_location(ast.ListComp(element, [rounds]), element))


def _reads(expression: ast.expr, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in walk(expression))


class Reading:
    """Evaluates expressions on demand for one session, and records which attributes were read."""

    def __init__(self, session: Analysis) -> None:
        self._session = session
        self._readers: dict[FunctionInfo, dict[Hashable, Walker]] = {}
        self.read_in: dict[FunctionInfo, set[Attribute]] = {}
        """For each function: the attributes on which values evaluated in it depend."""
        self.unscoped_reads: set[Attribute] = set()
        """The attributes on which values depend that were evaluated outside of functions."""
        self.read_set = self.unscoped_reads
        """The set that takes the attributes read by the current evaluation."""

    def forget(self, info: FunctionInfo) -> None:
        """Drop the evaluator of a function whose text changed."""
        self._readers.pop(info, None)

    def close(self) -> None:
        """Drop everything."""
        self._readers.clear()
        self.read_in.clear()
        self.unscoped_reads.clear()

    def attribute(self, info: ClassInfo, name: str) -> Value | None:
        """The value of an attribute, for a comparison: no read is recorded."""
        outer, self.read_set = self.read_set, set()
        try:
            return instance_attribute(self._session, info, name)
        finally:
            self.read_set = outer

    def evaluate(self, module: ModuleInfo, node: ast.expr) -> Value:
        """The value of an expression at a module's top level."""
        if isinstance(node, ast.Constant) and not isinstance(node.value, str):
            return Const(node.value) if node.value is not None else NONE
        session = self._session
        if session.stack.depth > DEEPEST:
            return UNKNOWN
        w = Walker(session, FunctionInfo(MODULE_SCOPE, module), {}, None, session.stack.depth)
        w.silent = 1
        return self.read(w, node)

    def read(self, w: Walker, node: ast.expr) -> Value:
        """The value of an expression as `w` evaluates it, with calls that are no part of the current walk."""
        outer, self.read_set = self.read_set, self._notes(w.info)
        with self._session.stack.region(traced=False), self._session.stack.separate():
            try:
                return w.eval(node)
            except RecursionError:
                return UNKNOWN
            finally:
                self.read_set = outer

    def evaluate_for(self, method: FunctionInfo, receiver: Value, node: ast.expr) -> Value:
        """The value of an expression in a method that is called on `receiver`; locals are evaluated on demand."""
        return self.read(self.reader(method, receiver), node)

    def _notes(self, info: FunctionInfo) -> set[Attribute]:
        return self.unscoped_reads if info.node is MODULE_SCOPE else self.read_in.setdefault(info, set())

    def evaluate_in(self, module: ModuleInfo, scope: FunctionInfo | None, node: ast.expr) -> Value:
        """The value of an expression in the function `scope`, whose locals are evaluated on demand; at the top level
        where that is None or a lambda."""
        if scope is None or isinstance(scope.node, ast.Lambda):
            return self.evaluate(module, node)
        w = self.reader(scope, Instance(scope.owner) if scope.owner is not None and not scope.is_static else None)
        try:
            return w.eval(node)
        except RecursionError:
            return UNKNOWN

    def reader(self, info: FunctionInfo, receiver: Value | None) -> Walker:
        """A walker for single expressions of a function: its body is not walked, locals are evaluated on demand."""
        readers, key = self._readers.setdefault(info, {}), None if receiver is None else receiver.key
        known = readers.get(key)
        if known is not None:
            return known
        assert not isinstance(info.node, ast.Lambda)
        session = self._session
        w = readers[key] = Walker(session, info, parameters(session, info, receiver), None, session.stack.depth)
        w.silent = 1
        w.statement = info.node
        if isinstance(receiver, Instance) and receiver.given and info.name == "__init__":
            w.env.update(receiver.given)
        for statement in statements_of(info.node.body):
            for name, value in _bound(statement):
                alternatives = w.lazy.setdefault(name, [])
                assert isinstance(alternatives, list)
                if not alternatives or (len(alternatives) < _MOST_ALTERNATIVES and not _reads(value, name)):
                    alternatives.append(value)
            if isinstance(statement, ast.Assign):
                continue
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                w.env[statement.name] = Function(session.inner_function(statement, info), closure=w.env)
            elif isinstance(statement, (ast.Import, ast.ImportFrom)):
                w.step(statement)
        return w

    def locals_of(self, info: FunctionInfo) -> Mapping[str, Value]:
        """The parameters and inner functions of a function, as far as its text alone says what they are."""
        bound = Instance(info.owner) if info.owner is not None and not info.is_static else None
        return self.reader(info, bound).env

    def examples(self, function: Function) -> tuple[Value, ...] | None:
        """The arguments of a function by the module's `example_inputs()`; None without one that fits."""
        module = function.info.module
        maker = module.functions.get("example_inputs")
        if maker is None or function.info.owner is not None:
            return None
        with self._session.stack.region(traced=False):
            made = self._session.walk_body(maker, parameters(self._session, maker, None), None, 1, None)
        return example_arguments(self._session, function.info, made)

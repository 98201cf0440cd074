"""What calling a module does besides computing, by the code in reach: draw from torch's generators, move running
statistics, what is not known, or something that stays (attributes, buffers, what it was given).

Torch's layers are known by name. Of others the `forward` is read, and what it calls, with the arguments that are known
to be None, False or True where it is called: a branch that these do not take counts for nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from contextvars import ContextVar

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Container, Static, Tensor, Value, options
from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo, ModuleInfo
from graphmend.analysis.program.entities import Instance
from graphmend.analysis.resolution.classes import mro
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.legality.bodies import methods
from graphmend.transforms.legality.bodies.arguments import MORE, Arguments, constant_of, decided, known_arguments
from graphmend.transforms.legality.bodies.layers import (
    NOT_KNOWN,
    Does,
    Effect,
    asks_in_place,
    of_layer,
    together,
)
from graphmend.transforms.legality.bodies.local_names import LocalNames, root_of
from graphmend.transforms.legality.bodies.new_memory import made_before
from graphmend.transforms.legality.bodies.own_object import OwnObject, gives_new
from graphmend.transforms.legality.bodies.replaced_modules import is_defined_twice, is_put_elsewhere
from graphmend.transforms.legality.names.replaced import is_lasting
from graphmend.transforms.legality.operations import aliases, flags
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.rows.modules import has_hooks

_DEEPEST = 12


def of_module(
    value: Value, tree: ast.AST | None, arguments: Arguments, depth: int = 0, *, given_new: bool = False
) -> Does:
    """What calling a module does; `tree` is the code in which its layers are made. `given_new`: nothing else has the
    tensor that it is given first, so that it may be changed in place.
    """
    if tree is None or has_hooks(tree):
        return Does(Effect.UNKNOWN, "hooks")
    return together(_of_one(one, tree, arguments, depth, given_new) for one in options(value))


def of_function(info: FunctionInfo, owner: ClassInfo | None, arguments: Arguments, depth: int = 0) -> Does:
    """What calling a function does, or a method of a class. What one does that calls itself is not known."""
    running = _RUNNING.get()
    if depth > _DEEPEST or (info, owner) in running:
        return Does(Effect.UNKNOWN, info.name)
    before = _RUNNING.set(running | {(info, owner)})
    try:
        return _Body(info, owner, arguments, depth).does()
    finally:
        _RUNNING.reset(before)


_RUNNING: ContextVar[frozenset[tuple[FunctionInfo, ClassInfo | None]]] = ContextVar("_RUNNING", default=frozenset())
"""The functions whose bodies are being looked at: one that calls itself twice would be looked at without end."""


def _of_one(value: Value, tree: ast.AST, arguments: Arguments, depth: int, new: bool) -> Does:
    match value:
        case ExternalInstance(cls=cls):
            return of_layer(cls, tree, new)
        case Container(kind="modules", items=tuple() as items):
            handed = [new, *map(gives_new, items)]  # each is given what the one in front of it gives
            return together(_of_one(one, tree, {}, depth, n) for one, n in zip(items, handed, strict=False))
        case Container(kind="modules", of=Value() as of):
            return _of_one(of, tree, {}, depth, False)
        case Instance(info=info):
            return _of_class(info, arguments, depth)
    return NOT_KNOWN


def _of_class(info: ClassInfo, arguments: Arguments, depth: int) -> Does:
    classes = mro(info)
    method = next((cls.methods["forward"] for cls in classes if "forward" in cls.methods), None)
    if method is None or is_defined_twice(method):
        return Does(Effect.UNKNOWN, f"`{info.name}`")
    calls = (Does(Effect.UNKNOWN, f"`{cls.name}.__call__`") for cls in classes if "__call__" in cls.methods)
    return together([of_function(method, info, arguments, depth), *calls])


class _Body:
    """The code of one function, called with what is known of its arguments."""

    def __init__(self, info: FunctionInfo, owner: ClassInfo | None, arguments: Arguments, depth: int) -> None:
        self._info, self._owner, self._depth = info, owner, depth
        self._module: ModuleInfo = info.module
        names = [p.arg for p in info.parameters]
        node = info.node
        self._own = OwnObject(info, owner)
        self._me = self._own.name
        self._names = LocalNames([node.body] if isinstance(node, ast.Lambda) else node.body, names, self._own.is_new)
        self._made = made_before([] if isinstance(node, ast.Lambda) else node.body, self._own.is_new)
        self._at: ast.stmt | None = None
        self._known: dict[str, object] = {}
        """Names that stand for None, False or True."""
        for position, name in enumerate(names[1:] if owner is not None else names):
            default = info.defaults.get(name)
            otherwise = ... if MORE in arguments else constant_of(default)
            given = arguments.get(position, arguments.get(name, otherwise))
            if given is not ... and not self._names.is_bound_again(name):
                self._known[name] = given
        self._found: list[Does] = []

    def does(self) -> Does:
        node = self._info.node
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        if not isinstance(node, ast.Lambda) and any(self._is_unknown_decorator(d) for d in node.decorator_list):
            self._add(Effect.UNKNOWN, node.decorator_list[0])
        self._visit(body)
        return together(self._found)

    def _is_unknown_decorator(self, node: ast.expr) -> bool:
        name = self._module.qualified(node.func if isinstance(node, ast.Call) else node) or ""
        return not name.startswith("torch.") and not (isinstance(node, ast.Name) and node.id == "staticmethod")

    def _add(self, effect: Effect, node: ast.AST) -> None:
        if isinstance(node, (ast.expr, ast.stmt)):
            self._found.append(Does(effect, f"`{shortened(node)}`"))

    # -- statements

    def _visit(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if isinstance(node, ast.stmt):
                self._statement(node)
            elif isinstance(node, ast.expr):
                self._expression(node)
            elif node is not None:
                self._visit(ast.iter_child_nodes(node))

    def _statement(self, statement: ast.stmt) -> None:
        self._at = statement
        match statement:
            case ast.If(test=test, body=body, orelse=orelse):
                told = decided(test, self._known)
                self._visit([test] if told is None else [])
                self._visit([*(body if told is not False else ()), *(orelse if told is not True else ())])
            case ast.Assign(targets=targets, value=value):
                self._expression(value)
                for target in targets:
                    self._bind(target)
            case ast.AnnAssign(target=target, value=value):
                self._visit([value])
                if value is not None:
                    self._bind(target)
            case ast.AugAssign(target=target, value=value):
                self._expression(value)
                self._augment(target, statement)
            case ast.For(target=target, iter=each, body=body, orelse=orelse):
                self._expression(each)
                self._runs_through(each)
                self._bind(target)
                self._visit([*body, *orelse])
            case ast.With(items=items, body=body):
                for item in items:
                    self._entered(item.context_expr)
                self._visit(body)
            case ast.Global() | ast.Nonlocal() | ast.Delete():
                self._add(Effect.STAYS, statement)
            case ast.Import() | ast.ImportFrom():
                self._add(Effect.UNKNOWN, statement)
            case ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef():
                self._visit(statement.body)
            case _:
                self._visit(ast.iter_child_nodes(statement))

    def _entered(self, context: ast.expr) -> None:
        if not isinstance(context, ast.Call) or self._module.qualified(context.func) not in methods.CONTEXTS:
            self._expression(context)
            self._add(Effect.UNKNOWN, context)

    def _bind(self, target: ast.expr) -> None:
        match target:
            case ast.Name():
                pass
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                for one in targets:
                    self._bind(one)
            case ast.Starred(value=one):
                self._bind(one)
            case ast.Subscript(value=ast.Name(id=name), slice=index) if self._is_own(name) or name in self._names.held:
                self._expression(index)
            case _:
                self._add(Effect.STAYS, target)

    def _augment(self, target: ast.expr, statement: ast.stmt) -> None:
        root = target.value if isinstance(target, ast.Subscript) else target
        if isinstance(root, ast.Name) and (self._is_own(root.id) or self._names.is_number(root.id)):
            return
        local = isinstance(root, ast.Name) and self._names.is_local(root.id)
        given = not local or (isinstance(root, ast.Name) and self._names.may_be_given(root.id))
        self._add(Effect.STAYS if given else Effect.UNKNOWN, statement)

    def _has_alone(self, node: ast.expr) -> bool:
        """Is what an expression stands for new, by its name or as it is?"""
        return self._own.is_new(node) or (isinstance(node, ast.Name) and self._is_own(node.id))

    def _is_own(self, name: str) -> bool:
        """Does a name stand for what this call has made, at the statement that is looked at?"""
        here = self._made.get(self._at, frozenset()) if self._at is not None else frozenset()
        return name in self._names.made or name in here

    def _runs_through(self, each: ast.expr) -> None:
        """Running through an iterator uses it up, and through an object runs its code."""
        match each:
            case ast.Call(func=ast.Name(id="enumerate" | "zip" | "reversed"), args=args):
                for one in args:
                    self._runs_through(one)
            case ast.Attribute():
                value = self._own.attribute(each)
                if value is None or not all(isinstance(v, (Container, Tensor, Static)) for v in options(value)):
                    self._add(Effect.UNKNOWN, each)

    # -- expressions

    def _expression(self, node: ast.expr) -> None:
        match node:
            case ast.IfExp(test=test, body=body, orelse=orelse):
                told = decided(test, self._known)
                self._visit([test] if told is None else [])
                self._visit([*([body] if told is not False else ()), *([orelse] if told is not True else ())])
                return
            case ast.Await() | ast.Yield() | ast.YieldFrom():
                self._add(Effect.STAYS, node)
            case ast.BinOp(left=left, right=right) if self._own.is_object(left) or self._own.is_object(right):
                self._add(Effect.UNKNOWN, node)
            case ast.Subscript(value=ast.Attribute() as of, ctx=ast.Load()) if self._own.may_run_code(of):
                self._add(Effect.UNKNOWN, node)
            case ast.Attribute(value=ast.Name(id=me), attr=attr) if me == self._me and self._own.is_method(attr):
                self._add(Effect.UNKNOWN, node)  # a property, or a method that is handed on
            case ast.Call():
                self._called(node)
        self._visit(ast.iter_child_nodes(node))

    def _called(self, node: ast.Call) -> None:
        function = node.func
        match function:
            case ast.Attribute(value=ast.Name(id=me), attr=attr) if me == self._me:
                return self._of_self(node, attr)
            case ast.Attribute() if (
                self._me is not None and root_of(function) == self._me and not self._own.is_of_tensor(function.value)
            ):
                return self._add(Effect.STAYS if methods.may_change(function.attr) else Effect.UNKNOWN, node)
            case ast.Subscript() if (held := self._own.attribute(function)) is not None:
                return self._one_called([held], node)
            case ast.Name(id=name) if self._names.is_local(name):
                return self._one_called([self._own.attribute(each) for each in self._names.looped_over(name)], node)
            case ast.Name(id=name) if name in self._module.functions and name not in self._module.redefined:
                lasting = is_lasting(name, self._module.source.tree)
                return self._function(self._module.functions[name], None, node) if lasting else self._unknown(node)
        of = root_of(function)
        local = of is not None and self._names.is_local(of)
        path = self._module.qualified(function) if of is not None and not local else None
        if isinstance(function, ast.Name):
            builtin = function.id if path == f"builtins.{function.id}" else ""
            return self._add(methods.of_builtin(builtin), node)
        folder, _, last = (path or "").rpartition(".")
        if folder in known.FUNCTIONAL:
            return self._of_torch(node, last)
        if path is None and isinstance(function, ast.Attribute):
            return self._of_value(node, function)
        if folder == "math" or path == "graphmend.runtime.select":  # whose sides are looked at like any other code
            return None
        if folder in ("logging", "warnings") or path in methods.EMITS or last in methods.SAYS:
            return self._add(Effect.SAYS, node)
        stays = folder == "graphmend.runtime" or (isinstance(function, ast.Attribute) and methods.may_change(last))
        return self._add(Effect.STAYS if stays else Effect.UNKNOWN, node)

    def _unknown(self, node: ast.AST) -> None:
        self._add(Effect.UNKNOWN, node)

    def _of_torch(self, node: ast.Call, last: str) -> None:
        """A function of torch, of which nothing is known but by the tables of `operations`."""
        keywords = {k.arg: k.value for k in node.keywords}
        starred = None in keywords or any(isinstance(a, ast.Starred) for a in node.args)
        if starred and (last in flags.INPLACE or last in flags.MAX_NORM):
            return self._unknown(node)
        if last.endswith("_") or "out" in keywords or asks_in_place(node, last):
            new = bool(node.args) and self._has_alone(node.args[0]) and "out" not in keywords
            effect = Effect.DRAWS if last in known.DRAWN_IN_PLACE or last in known.RANDOM else Effect.NOTHING
            return self._add(effect if new else Effect.STAYS, node)
        tabled = "max_norm" in keywords or len(node.args) > flags.MAX_NORM.get(last, len(node.args))
        if last in known.EFFECTFUL or "generator" in keywords or tabled or (last == "normalize" and len(node.args) > 4):
            return self._add(Effect.STAYS, node)
        if last in known.RANDOM:
            return self._add(Effect.DRAWS, node)
        measured = last in aliases.NEW or last in aliases.VIEWS or last in aliases.MAY_BE_INPUT
        return None if measured else self._unknown(node)

    def _of_value(self, node: ast.Call, function: ast.Attribute) -> None:
        """A method of a value that is taken to be a tensor, or a container that was made here."""
        owner, last = function.value, function.attr
        if isinstance(owner, ast.Name) and owner.id in self._names.held and last in methods.CHANGE:
            return None
        if last.endswith("_") and not last.endswith("__"):
            effect = Effect.DRAWS if last in known.DRAWN_IN_PLACE else Effect.NOTHING
            return self._add(effect if self._has_alone(owner) else Effect.STAYS, node)
        if last in methods.CHANGE or any(k.arg == "out" for k in node.keywords):
            return self._add(Effect.STAYS, node)
        if last in methods.SAYS and isinstance(owner, ast.Name) and not self._names.is_local(owner.id):
            return self._add(Effect.SAYS, node)
        local = not isinstance(owner, ast.Name) or self._names.is_local(owner.id)
        return None if last in methods.TENSOR_METHODS and local else self._unknown(node)

    def _of_self(self, node: ast.Call, attr: str) -> None:
        assert self._owner is not None
        classes = mro(self._owner)
        if (method := next((cls.methods[attr] for cls in classes if attr in cls.methods), None)) is not None:
            return self._function(method, None if method.is_static else self._owner, node)
        if attr in methods.CHANGE:
            return self._add(Effect.STAYS, node)
        value = self._own.attribute(node.func)
        if value is None or is_put_elsewhere(attr, self._module.source.tree):
            return self._unknown(node)
        arguments = known_arguments(node, self._known)
        new = bool(node.args) and self._has_alone(node.args[0])
        self._found.append(of_module(value, self._module.source.tree, arguments, self._depth + 1, given_new=new))
        return None

    def _one_called(self, held: Sequence[Value | None], node: ast.Call) -> None:
        """One of several modules, whichever: what it is given need not come from the one in front of it."""
        arguments, tree = known_arguments(node, self._known), self._module.source.tree
        if not held:
            self._unknown(node)
        for value in (one for several in held for one in (options(several) if several is not None else (None,))):
            parts = value.items or (value.of,) if isinstance(value, Container) and value.kind == "modules" else (None,)
            for part in parts:
                if part is None:
                    self._unknown(node)
                else:
                    self._found.append(of_module(part, tree, arguments, self._depth + 1))

    def _function(self, info: FunctionInfo, owner: ClassInfo | None, node: ast.Call) -> None:
        self._found.append(of_function(info, owner, known_arguments(node, self._known), self._depth + 1))

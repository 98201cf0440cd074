"""Statements of a project's code in order: both sides of a test that cannot be told, a few rounds of each loop."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable
from typing import Any

from . import batches, externals, files, outputs
from .calls import Calls
from .expressions import TooLong, put
from .values import NAMESPACES, UNKNOWN, Batches, Class, External, Function, Instance, Module, Scope, known


class _Left(Exception):
    """A function is left with a value."""

    def __init__(self, value: Any) -> None:
        self.value = value


class _Round(Exception):
    """`break`; a `continue` has `again`."""

    def __init__(self, again: bool) -> None:
        self.again = again


class Statements(Calls):
    """Reads modules of a project; `root` is its folder."""

    def __init__(self, resize: Callable[[int], int], watched: Callable[[Class | Function], bool], root: str) -> None:
        super().__init__(resize, watched, root)
        self.modules: dict[str, Scope] = {}
        self.functions: list[Function] = []
        """Every function and method that was defined, in order."""
        self._unsure: list[list[Any]] = []
        """What the functions on the way would return, if a test that cannot be told came out so."""

    def module(self, path: str) -> Scope:
        """The names of a module, after its code was read."""
        path = os.path.realpath(path)
        if path not in self.modules:
            scope = self.modules[path] = Scope(path, _BUILTIN_NAMES)
            scope.names.update({"__name__": "__main__", "__file__": path})
            tree = files.tree_of(path)
            if tree is not None:
                self._quietly(tree.body, scope)
        return self.modules[path]

    def follow(self, function: Function, scope: Scope) -> Any:
        if isinstance(function.node, ast.Lambda):
            return self.value(function.node.body, scope)
        self._unsure.append([])
        before, self.folder = self.folder, os.path.dirname(scope.path)
        try:
            self.block(function.node.body, scope)
        except _Left as left:
            self._unsure[-1].append(left.value)
        except _Round:
            pass
        finally:
            self.folder = before
            found = self._unsure.pop()
        return next((value for value in found if value is not UNKNOWN and value is not None), UNKNOWN)

    def _quietly(self, body: list[ast.stmt], scope: Scope) -> None:
        before, self.folder = self.folder, os.path.dirname(scope.path)
        self._unsure.append([])
        try:
            self.block(body, scope)
        except (_Left, _Round):
            pass
        finally:
            self.folder = before
            self._unsure.pop()

    def block(self, body: list[ast.stmt], scope: Scope) -> None:
        for statement in body:
            self.steps -= 1
            if self.steps < 0:
                raise TooLong
            read = getattr(self, "_s_" + type(statement).__name__.lower(), None)
            if read is not None:
                read(statement, scope)

    # names

    def bind(self, target: ast.expr, value: Any, scope: Scope) -> None:
        if isinstance(target, ast.Name):
            home = scope.declared.get(target.id, scope)
            if home is scope or value is not UNKNOWN:  # what another call has told of it stays
                home.names[target.id] = value
                home.outputs.pop(target.id, None)
        elif isinstance(target, ast.Attribute):
            owner = self.value(target.value, scope)
            if isinstance(owner, Instance):
                owner.fields[target.attr] = value
                if owner.later is not None:
                    owner.later[target.attr] = value
            elif isinstance(owner, Class):
                owner.scope.names[target.attr] = value
            elif isinstance(owner, dict):
                owner[target.attr] = value
            elif isinstance(owner, NAMESPACES):
                setattr(owner, target.attr, value)
        elif isinstance(target, ast.Subscript):
            owner, index = self.value(target.value, scope), self.value(target.slice, scope)
            if isinstance(owner, dict) and _fits(owner, index):
                put(owner, index, value)
            elif isinstance(owner, list) and _fits(owner, index):
                owner[index] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target.elts, value, scope)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, value, scope)

    def _unpack(self, targets: list[ast.expr], value: Any, scope: Scope) -> None:
        looped = isinstance(value, (tuple, list, str, dict)) or hasattr(value, "__len__") or hasattr(value, "__next__")
        parts = self.items(value) if looped else []
        star = next((n for n, each in enumerate(targets) if isinstance(each, ast.Starred)), None)
        if star is not None and len(parts) >= len(targets) - 1:
            after = len(targets) - star - 1
            parts = [*parts[:star], parts[star : len(parts) - after], *parts[len(parts) - after :]]
        for number, target in enumerate(targets):
            self.bind(target, parts[number] if len(parts) == len(targets) else UNKNOWN, scope)

    def _s_assign(self, node: ast.Assign, scope: Scope) -> None:
        value = self.value(node.value, scope)
        found = UNKNOWN if known(value) else outputs.given(node.value, scope, self.value, self.is_module)
        for target in node.targets:
            self.bind(target, value, scope)
            outputs.kept(target, found, scope)

    def _s_annassign(self, node: ast.AnnAssign, scope: Scope) -> None:
        if node.value is not None:
            self.bind(node.target, self.value(node.value, scope), scope)

    def _s_global(self, node: ast.Global, scope: Scope) -> None:
        if scope is not scope.of_module:
            scope.declared.update(dict.fromkeys(node.names, scope.of_module))

    def _s_nonlocal(self, node: ast.Nonlocal, scope: Scope) -> None:
        for name in node.names:
            around = scope.outer
            while around is not None and name not in around.names:
                around = around.outer
            if around is not None:
                scope.declared[name] = around

    def _s_augassign(self, node: ast.AugAssign, scope: Scope) -> None:
        old, value = self.value(_loaded(node.target), scope), self.value(node.value, scope)
        try:
            self.bind(node.target, self.operated(type(node.op), old, value), scope)
        except Exception:  # of a real value; the name is not known any more
            self.bind(node.target, UNKNOWN, scope)

    def _s_expr(self, node: ast.Expr, scope: Scope) -> None:
        value = node.value.value if isinstance(node.value, (ast.Yield, ast.YieldFrom)) else node.value
        found = self.value(value, scope)
        if isinstance(node.value, ast.Yield):
            raise _Left([found])  # one item is enough

    # definitions

    def _s_functiondef(self, node: Any, scope: Scope) -> None:
        home = scope.names.get("__class__")
        scope.names[node.name] = function = Function(node, _around(scope), home=home)
        self.functions.append(function)
        self._decorated(node, function, scope)

    def _decorated(self, node: Any, defined: Function | Class, scope: Scope) -> None:
        """What decorators of the project do, such as to keep it in a table; the name stands for what it stood for."""
        for each in reversed(node.decorator_list):
            decorator = self.value(each, scope)
            if isinstance(decorator, (Function, Instance)):
                self.invoke(decorator, [defined], {})

    _s_asyncfunctiondef = _s_functiondef

    def _s_classdef(self, node: ast.ClassDef, scope: Scope) -> None:
        inner = Scope(scope.path, scope)
        scope.names[node.name] = found = Class(node, inner, [self.value(base, scope) for base in node.bases])
        inner.names["__class__"] = found
        self.block(node.body, inner)
        self._decorated(node, found, scope)

    def _s_import(self, node: ast.Import, scope: Scope) -> None:
        for alias in node.names:
            first = alias.name if alias.asname else alias.name.partition(".")[0]
            found = self._imported(first, 0, scope.path)
            scope.names[alias.asname or first] = found
            if not alias.asname and "." in alias.name:
                self._imported(alias.name, 0, scope.path)

    def _s_importfrom(self, node: ast.ImportFrom, scope: Scope) -> None:
        module = self._imported(node.module or "", node.level, scope.path)
        for alias in node.names:
            if alias.name == "*":
                scope.names.update(module.scope.names if isinstance(module, Module) else {})
                continue
            found = self.attribute(module, alias.name) if module is not UNKNOWN else UNKNOWN
            if found is UNKNOWN:  # a module of a package
                found = self._imported(".".join(filter(None, [node.module, alias.name])), node.level, scope.path)
            if not (found is UNKNOWN and alias.name in scope.names):  # `try: import a except ImportError: import b`
                scope.names[alias.asname or alias.name] = found

    def imported(self, name: str) -> Any:
        return self._imported(name, 0, os.path.join(self.folder or self.root, "__main__.py"))

    def _imported(self, name: str, level: int, path: str) -> Any:
        folder = os.path.dirname(path)
        for _ in range(level - 1):
            folder = os.path.dirname(folder)
        for top in [folder] if level else [folder, files.import_root(path), self.root, os.path.join(self.root, "src")]:
            place = os.path.join(top, *name.split(".")) if name else top
            for found in (place + ".py", os.path.join(place, "__init__.py")):
                if os.path.isfile(found):
                    return Module(self.module(found))
            if (name and os.path.isdir(place) and top != os.path.dirname(place)) or (level and not name):
                return Module(Scope(place, None))
        return externals.imported(name) if not level else UNKNOWN

    # control flow

    def _s_if(self, node: ast.If, scope: Scope) -> None:
        test = self.value(node.test, scope)
        if test is not UNKNOWN and not isinstance(test, (Instance, Function, Class, External)):
            self.block(node.body if _true(test) else node.orelse, scope)
            return
        for body in (node.orelse, node.body):
            self._perhaps(body, scope)

    def _perhaps(self, body: list[ast.stmt], scope: Scope) -> None:
        """A block that may or may not be run: it ends nothing, and makes nothing unknown."""
        before = dict(scope.names)
        try:
            self.block(body, scope)
        except _Left as left:
            self._unsure[-1].append(left.value)
        except _Round:
            pass
        for name, value in before.items():
            if scope.names.get(name) is UNKNOWN:
                scope.names[name] = value

    def _s_for(self, node: Any, scope: Scope) -> None:
        for item in self.items(self._looped(node.iter, scope)):
            calls = len(self.called)
            self.bind(node.target, item, scope)
            self._stated(node.target, scope)
            if not known(item):
                self.looped(node.target, node.iter, scope)
            try:
                self.block(node.body, scope)
            except _Round as left:
                if not left.again:
                    break
            if len(self.called) > calls:  # a round of training is like any other
                break
        self.block(node.orelse, scope)

    _s_asyncfor = _s_for

    def looped(self, target: ast.expr, over: ast.expr, scope: Scope) -> None:
        outputs.looped(target, over, scope, self.value, self.is_module)

    def _stated(self, target: ast.expr, scope: Scope) -> None:
        """What is looped over and cannot be told is what the file's comments say of its names."""
        for name in (n.id for n in ast.walk(target) if isinstance(n, ast.Name)):
            if scope.names.get(name) is UNKNOWN:
                scope.names[name] = batches.stated(name, scope.path, target.lineno, self.resize)

    def _looped(self, node: ast.expr, scope: Scope) -> Any:
        """What is looped over; a progress bar around it is looked through."""
        value = self.value(node, scope)
        if value is UNKNOWN and isinstance(node, ast.Call) and node.args:
            inner = self._looped(node.args[0], scope)
            if isinstance(node.func, ast.Name) and node.func.id == "enumerate":
                return list(enumerate(self.items(inner)))
            return inner
        if value is UNKNOWN and isinstance(node, (ast.Name, ast.Attribute)) and _LOADS.search(ast.unparse(node)):
            join = batches.joining(scope)
            return Batches(UNKNOWN, join) if join is not UNKNOWN else UNKNOWN
        return value

    def _s_while(self, node: ast.While, scope: Scope) -> None:
        if self.value(node.test, scope) is not False:
            self._perhaps(node.body, scope)

    def _s_with(self, node: Any, scope: Scope) -> None:
        for item in node.items:
            value = self.value(item.context_expr, scope)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, value, scope)
        self.block(node.body, scope)

    _s_asyncwith = _s_with

    def _s_try(self, node: Any, scope: Scope) -> None:
        self.block(node.body, scope)
        for handler in node.handlers:
            if any(isinstance(each, (ast.Import, ast.ImportFrom, ast.Assign)) for each in handler.body):
                self._fallback(handler.body, scope)
        self.block(node.orelse, scope)
        self.block(node.finalbody, scope)

    _s_trystar = _s_try

    def _fallback(self, body: list[ast.stmt], scope: Scope) -> None:
        """What a handler defines counts where the block before it left a name unknown."""
        before = {name: value for name, value in scope.names.items() if value is not UNKNOWN}
        self._perhaps(body, scope)
        scope.names.update(before)

    def _s_return(self, node: ast.Return, scope: Scope) -> None:
        raise _Left(self.value(node.value, scope))

    def _s_break(self, node: ast.Break, scope: Scope) -> None:
        raise _Round(again=False)

    def _s_continue(self, node: ast.Continue, scope: Scope) -> None:
        raise _Round(again=True)

    def _s_assert(self, node: ast.Assert, scope: Scope) -> None:
        self.value(node.test, scope)

    def _s_raise(self, node: ast.Raise, scope: Scope) -> None:
        raise _Left(UNKNOWN)

    def _s_match(self, node: Any, scope: Scope) -> None:
        self.value(node.subject, scope)
        for case in node.cases:
            self._perhaps(case.body, scope)


_LOADS = re.compile(r"(loader|batches|dl)$")
"""What a loop over batches is over, by its name, where nothing else is known of it."""


def _around(scope: Scope) -> Scope:
    """What a function sees around it: not the names of its class."""
    return scope.outer if "__class__" in scope.names and scope.outer is not None else scope


def _fits(owner: Any, index: Any) -> bool:
    if isinstance(owner, dict):
        return not isinstance(index, (dict, list, set))
    return type(index) is int and -len(owner) <= index < len(owner)


def _true(value: Any) -> bool:
    try:
        return bool(value)
    except Exception:  # of a tensor with several elements
        return True


def _loaded(target: ast.expr) -> ast.expr:
    return ast.Name(target.id, ast.Load()) if isinstance(target, ast.Name) else target


class _Builtins(Scope):
    """The names that every module has."""

    def get(self, name: str) -> Any:
        return externals.builtin(name)


_BUILTIN_NAMES = _Builtins("")

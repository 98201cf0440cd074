"""The machine that executes driver code: names, assignments, calls of functions, and what was compiled."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from graphmend.analysis.driver.execution import calls, expressions, members, statements
from graphmend.analysis.driver.execution.objects import (
    NONE,
    NOTHING,
    UNKNOWN,
    Atom,
    Callable,
    ClassObject,
    Compiled,
    Constant,
    Disabled,
    Inside,
    Named,
    Object,
    Package,
    Scope,
    Site,
    Values,
    constant,
    mapping,
    sequence,
    union,
)
from graphmend.analysis.driver.frameworks import CONTEXT_MAKERS, DISABLERS
from graphmend.analysis.driver.near import Near
from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo, ModuleInfo
from graphmend.analysis.resolution.names import starred

if TYPE_CHECKING:
    from graphmend.analysis.resolution.interface import ProgramView

#: steps of one execution; behind them, everything is unknown
_STEPS = 12_000
#: calls within each other
_DEEPEST = 24
#: calls of one function that may be on the stack
_RECURSION = 2


class DriverMachine:
    """Executes the top level of a module, and functions of it on demand. Its memory is that of one check."""

    def __init__(self, program: ProgramView, main: ModuleInfo, near: Near) -> None:
        self.program = program
        self.main = main
        self.objects: list[Object] = []
        self.compiled: list[Compiled] = []
        self.visited: set[FunctionInfo] = set()
        self.patched: dict[str, Values] = {}
        self.is_certain = True
        self.left = _STEPS
        self._near = near
        self._inside: Inside | None = None
        self._tops: dict[ModuleInfo, Scope] = {}
        self._importing = 0
        self._imported: set[str] = set()
        self._left_apart = _STEPS
        """Steps of the imported modules' top levels."""
        self._stack: list[FunctionInfo] = []
        self._classes: dict[ClassInfo, ClassObject] = {}
        self._generic: dict[ClassInfo, Object] = {}
        self._inner: dict[ast.AST, FunctionInfo | ClassInfo] = {}

    # -- what the parts of the machine share

    @contextmanager
    def perhaps(self) -> Iterator[None]:
        """What is executed within may not happen."""
        outer, self.is_certain = self.is_certain, False
        try:
            yield
        finally:
            self.is_certain = outer

    def spend(self) -> bool:
        """Take one step; False where there were too many."""
        self.left -= 1
        return self.left > 0

    def evaluate(self, node: ast.expr, scope: Scope) -> Values:
        """The value of an expression."""
        return expressions.evaluate(self, node, scope)

    def enter_context(self, node: ast.expr, inside: Inside, scope: Scope) -> Values:
        """The value of a context of a `with` statement; a function that makes it executes `inside` where it yields."""
        called = expressions.called(self, node, scope) if isinstance(node, ast.Call) else None
        self._inside = inside
        try:
            return self.call(*called, node, scope) if called is not None else self.evaluate(node, scope)
        finally:
            self._inside = None

    def execute(self, body: list[ast.stmt], scope: Scope) -> bool:
        """Execute statements; False where what follows them is never reached."""
        return statements.execute(self, body, scope)

    def call(
        self, function: Values, arguments: list[Values], keywords: dict[str, Values], node: ast.expr, scope: Scope
    ) -> Values:
        """The value of a call, which is executed."""
        return calls.call(self, function, arguments, keywords, node, scope)

    def attribute(self, owner: Atom, name: str, scope: Scope) -> Values:
        """The value of an attribute; NOTHING where there is none for certain."""
        return members.attribute(self, owner, name, scope)

    def set_attribute(self, owner: Atom, name: str, values: Values) -> None:
        """`owner.name = values`."""
        members.set_attribute(self, owner, name, values)

    def make(self, info: ClassInfo | None, name: str, scope: Scope | None = None) -> Object:
        """A new object."""
        made = Object(info, name, scope)
        self.objects.append(made)
        return made

    # -- definitions

    def class_object(self, info: ClassInfo, scope: Scope | None = None) -> ClassObject:
        """The one object of a class."""
        found = self._classes.get(info)
        if found is None:
            found = self._classes[info] = ClassObject(info, scope)
        if scope is not None:
            found.scope = scope
        return found

    def define_class(self, info: ClassInfo, scope: Scope) -> ClassObject:
        """A class statement is executed."""
        return self.class_object(info, scope)

    def generic(self, info: ClassInfo) -> Object:
        """An instance of a class, made with unknown arguments."""
        found = self._generic.get(info)
        if found is None:
            found = self._generic[info] = self.make(info, "", self.class_object(info).scope)
            for one in members.near_chain(self, info):
                init = one.methods.get("__init__")
                if init is not None:
                    around = self.class_object(one).scope or self.top_level(one.module)
                    self.run(Callable(init, around, found), [], {}, is_entry=True)
                    break
        return found

    def inner(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: Scope) -> FunctionInfo:
        """The definition of a function."""
        if scope.function is None and not isinstance(node, ast.Lambda):
            top = scope.module.functions.get(node.name)
            if top is not None and (scope.outer is None):
                return top
        found = self._inner.get(node)
        if found is None:
            if scope.function is not None:
                found = self.program.inner_function(node, scope.function)
            else:
                found = FunctionInfo(node, scope.module)
            self._inner[node] = found
        assert isinstance(found, FunctionInfo)
        return found

    def inner_class(self, node: ast.ClassDef, scope: Scope) -> ClassInfo:
        """The definition of a class."""
        if scope.function is None and scope.outer is None and node.name in scope.module.classes:
            return scope.module.classes[node.name]
        found = self._inner.get(node)
        if found is None:
            found = self._inner[node] = ClassInfo(
                node, scope.module, scope.function.qualname if scope.function is not None else ""
            )
        assert isinstance(found, ClassInfo)
        return found

    # -- names

    def name(self, name: str, scope: Scope) -> Values:
        """What a name stands for."""
        around: Scope | None = scope
        while around is not None:
            if name in around.variables and name not in around.shared:
                return around.variables[name]
            around = around.outer
        top = self.top_level(scope.module)
        if name in top.variables:
            return top.variables[name]
        if name == "__name__":
            return (Constant("__main__" if scope.module is self.main else scope.module.name),)
        if name in scope.module.functions:
            return (Callable(scope.module.functions[name], top),)
        if name in scope.module.classes:
            return (self.class_object(scope.module.classes[name]),)
        for star in starred(scope.module):
            if star.partition(".")[0] == "torch":
                return self.qualified(f"{star}.{name}")
            found = self._in_module(star, name)
            if found:
                return found
        return (Named(f"builtins.{name}"),)

    def qualified(self, qualified: str) -> Values:
        """What a qualified name stands for: something of the program, or a `Named`."""
        if qualified in self.patched:
            return self.patched[qualified]
        if (module := self._near.get(qualified)) is not None:
            return (Package(module),)
        owner, _, name = qualified.rpartition(".")
        return (self._in_module(owner, name) if owner else NOTHING) or (Named(qualified),)

    def _in_module(self, owner: str, name: str) -> Values:
        module = self._near.get(owner)
        if module is None:
            return NOTHING
        if module in self._tops or _must_run(module, name):
            top = self.top_level(module)
            if name in top.variables:
                return top.variables[name]
        if name in module.functions:
            return (Callable(module.functions[name], None),)
        if name in module.classes:
            return (self.class_object(module.classes[name]),)
        if name in module.imports and module.imports[name] != f"{owner}.{name}":
            return self.qualified(module.imports[name])
        for star in starred(module):
            if star != owner and (found := self._in_module(star, name)):
                return found
        return NOTHING

    def top_level(self, module: ModuleInfo) -> Scope:
        """The variables of a module, which is executed if it was not."""
        top = self._tops.get(module)
        if top is None:
            top = self._tops[module] = Scope(module)
            tree = module.source.tree
            self._importing += module is not self.main
            certain, self.is_certain = self.is_certain, True
            with self._steps_of_imports(module):
                if tree is not None:
                    self.execute(tree.body, top)
            self.is_certain = certain
            self._importing -= module is not self.main
        return top

    @contextmanager
    def _steps_of_imports(self, module: ModuleInfo) -> Iterator[None]:
        """What the program imports has steps of its own: a large package leaves the program its steps."""
        apart = module is not self.main and self._importing == 1
        if apart:
            self.left, self._left_apart = self._left_apart, self.left
        try:
            yield
        finally:
            if apart:
                self.left, self._left_apart = self._left_apart, self.left

    # -- assignment

    def assign(self, target: ast.expr, values: Values, scope: Scope) -> None:
        """Bind names, attributes and items."""
        if isinstance(target, ast.Name):
            self._bind(target.id, values, scope)
        elif isinstance(target, ast.Attribute):
            for owner in self.evaluate(target.value, scope):
                self.set_attribute(owner, target.attr, values)
        elif isinstance(target, ast.Subscript):
            key = constant(self.evaluate(target.slice, scope)) if not isinstance(target.slice, ast.Slice) else ...
            for owner in self.evaluate(target.value, scope):
                expressions.set_item(self, owner, key, values)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for i, one in enumerate(target.elts):
                if isinstance(one, ast.Starred):
                    held = [a.held if isinstance(a, Object) else UNKNOWN for a in values]
                    self.assign(one.value, (sequence([], union(*held) if held else UNKNOWN),), scope)
                else:
                    parts = [expressions.item(self, a, i, scope) for a in values]
                    self.assign(one, union(*parts) if parts else UNKNOWN, scope)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, values, scope)

    def _bind(self, name: str, values: Values, scope: Scope) -> None:
        if name in scope.shared:
            around = scope.outer
            while around is not None and name not in around.variables:
                around = around.outer
            around = around or self.top_level(scope.module)
            old = around.variables.get(name, NOTHING)
            around.variables[name] = values if self.is_certain else union(old, values)
        else:
            scope.variables[name] = values

    # -- functions

    def run(
        self, function: Callable, arguments: list[Values], keywords: dict[str, Values], *, is_entry: bool = False
    ) -> Values:
        """The result of a function of the program. Nothing in sight calls an entry: its parameters may be anything."""
        info = function.info
        if len(self._stack) >= _DEEPEST or self._stack.count(info) >= _RECURSION or self.left <= 0:
            return UNKNOWN
        if info.decorated_with(*DISABLERS):
            return UNKNOWN
        self.visited.add(info)
        scope = Scope(info.module, info, function.scope)
        if self._inside is not None and info.decorated_with(*CONTEXT_MAKERS):
            scope.inside, self._inside = self._inside, None
        self._stack.append(info)
        try:
            self._bind_parameters(function, scope, arguments, keywords, is_entry)
            if isinstance(info.node, ast.Lambda):
                return self.evaluate(info.node.body, scope)
            ends = self.execute(info.node.body, scope)
        finally:
            self._stack.pop()
        if scope.yielded is not None:
            return (scope.yielded,)
        return union(scope.returned, NONE) if ends and scope.returned else scope.returned or NONE

    def _bind_parameters(
        self,
        function: Callable,
        scope: Scope,
        arguments: list[Values],
        keywords: dict[str, Values],
        is_entry: bool,
    ) -> None:
        info, node = function.info, function.info.node.args
        if function.receiver is not None:
            arguments = [(function.receiver,), *arguments]
        variables = scope.variables
        variables.update({p.arg: v for p, v in zip(info.parameters, arguments, strict=False)})
        names = {p.arg for p in (*info.parameters, *node.kwonlyargs)}
        variables.update({name: values for name, values in keywords.items() if name in names})
        for parameter in (*info.parameters, *node.kwonlyargs):
            if parameter.arg in variables and variables[parameter.arg] != UNKNOWN:
                continue
            default = info.defaults.get(parameter.arg)
            known = parameter.arg in variables
            if default is not None and not known:
                around = function.scope or self.top_level(info.module)
                values = self.evaluate(default, around)
                variables[parameter.arg] = union(values, UNKNOWN) if is_entry else values
            else:
                variables[parameter.arg] = members.annotated_object(self, info, parameter.annotation)
        if node.vararg is not None:
            variables[node.vararg.arg] = (
                sequence(arguments[len(info.parameters) :], UNKNOWN if is_entry else (), "builtins.tuple"),
            )
        if node.kwarg is not None:
            extra: dict[object, Values] = {k: v for k, v in keywords.items() if k not in names}
            variables[node.kwarg.arg] = (mapping(extra),)

    def enter(self, info: FunctionInfo, receiver: Atom | None) -> None:
        """Execute a function that nothing in sight calls."""
        owner = info.owner
        around = (self.class_object(owner).scope if owner is not None else None) or self.top_level(info.module)
        self.run(Callable(info, around, receiver), [], {}, is_entry=True)

    def follows(self, module: ModuleInfo) -> bool:
        """Whether the source of a module is followed; else it is known by its names only."""
        return self._near.follows(module)

    def imports(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        """An import statement executes modules that register their classes and functions somewhere, however deep."""
        if self._importing:
            return
        names = list(scope.module.imported(node).values())
        owners = [one for q in names for one in (q, q.rpartition(".")[0]) if one]
        for module in self._near.registering(owners, self._imported):
            self.top_level(module)

    # -- compile sites

    def compiles(self, targets: Values, site: Site) -> list[Compiled]:
        """A site compiles something: note it."""
        found = []
        for target in targets:
            if isinstance(target, (Disabled, Constant)):
                continue
            made = target if isinstance(target, Compiled) else Compiled(target, site)
            found.append(made)
            if not self._importing and made is not target:
                self.compiled.append(made)
        return found


def _must_run(module: ModuleInfo, name: str) -> bool:
    """Whether a module must be executed to know what one of its names stands for; definitions are known without."""
    info, cls = module.functions.get(name), module.classes.get(name)
    if info is not None:
        return bool(info.decorators)
    if cls is not None:
        return bool(cls.node.decorator_list) or any(method.decorators for method in cls.methods.values())
    return name in module.globals or name in module.annotations

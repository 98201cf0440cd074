"""What the parts of the machine may ask of it."""

from __future__ import annotations

import ast
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from graphmend.analysis.driver.execution.objects import (
    Atom,
    Callable,
    ClassObject,
    Compiled,
    Inside,
    Object,
    Scope,
    Site,
    Values,
)

if TYPE_CHECKING:
    from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo, ModuleInfo
    from graphmend.analysis.resolution.interface import ProgramView


class Machine(Protocol):
    """The state of one abstract execution."""

    program: ProgramView
    main: ModuleInfo
    """The module that is checked."""
    objects: list[Object]
    """Every object that was made."""
    patched: dict[str, Values]
    """What the program has put in the place of functions and classes without available source."""

    @property
    def is_certain(self) -> bool:
        """Whether what is executed now happens on every run."""

    def perhaps(self) -> AbstractContextManager[None]:
        """What is executed within may not happen."""

    def spend(self) -> bool:
        """Take one step; False where there were too many."""

    def evaluate(self, node: ast.expr, scope: Scope) -> Values:
        """The value of an expression."""

    def enter_context(self, node: ast.expr, inside: Inside, scope: Scope) -> Values:
        """The value of a context of a `with` statement; a function that makes it executes `inside` where it yields."""

    def call(
        self, function: Values, arguments: list[Values], keywords: dict[str, Values], node: ast.expr, scope: Scope
    ) -> Values:
        """The value of a call, which is executed."""

    def attribute(self, owner: Atom, name: str, scope: Scope) -> Values:
        """The value of an attribute; NOTHING where there is none for certain."""

    def assign(self, target: ast.expr, values: Values, scope: Scope) -> None:
        """Bind names, attributes and items."""

    def set_attribute(self, owner: Atom, name: str, values: Values) -> None:
        """`owner.name = values`."""

    def execute(self, statements: list[ast.stmt], scope: Scope) -> bool:
        """Execute statements; False where what follows them is never reached."""

    def run(self, function: Callable, arguments: list[Values], keywords: dict[str, Values]) -> Values:
        """The result of a function of the program."""

    def class_object(self, info: ClassInfo, scope: Scope | None = None) -> ClassObject:
        """The one object of a class."""

    def define_class(self, info: ClassInfo, scope: Scope) -> ClassObject:
        """A class statement is executed."""

    def generic(self, info: ClassInfo) -> Object:
        """An instance of a class, made with unknown arguments."""

    def make(self, info: ClassInfo | None, name: str, scope: Scope | None = None) -> Object:
        """A new object."""

    def inner(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: Scope) -> FunctionInfo:
        """The definition of a function."""

    def inner_class(self, node: ast.ClassDef, scope: Scope) -> ClassInfo:
        """The definition of a class."""

    def top_level(self, module: ModuleInfo) -> Scope:
        """The variables of a module, which is executed if it was not."""

    def name(self, name: str, scope: Scope) -> Values:
        """What a name stands for."""

    def qualified(self, qualified: str) -> Values:
        """What a qualified name stands for: something of the program, or a `Named`."""

    def follows(self, module: ModuleInfo) -> bool:
        """Whether the source of a module is followed; else it is known by its names only."""

    def imports(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        """An import statement executes a module that registers its classes somewhere."""

    def compiles(self, targets: Values, site: Site) -> list[Compiled]:
        """A site compiles something: note it."""

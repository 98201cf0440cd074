"""Definitions of a module: imports, functions, classes and globals, before any evaluation."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from graphmend.analysis.program.instance_stores import assignments, growths, registrations
from graphmend.analysis.program.module_names import BoundNames, SwitchedNames
from graphmend.analysis.syntax.function_source import ReleasedTree
from graphmend.analysis.syntax.nodes import (
    FunctionNode,
    bound_names,
    dotted,
    is_stub,
    loop_variables,
    statements_of,
)
from graphmend.analysis.syntax.nodes import says_global as says_global
from graphmend.analysis.syntax.scopes import Bindings

if TYPE_CHECKING:
    from graphmend.analysis.lattice.values import Value
    from graphmend.analysis.syntax.source import Source


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class FunctionInfo:
    """The definition of a function or lambda: its node, place, parameters and decorators."""

    def __init__(
        self, node: FunctionNode, module: ModuleInfo, owner: ClassInfo | None = None, outer: FunctionInfo | None = None
    ) -> None:
        self._node: FunctionNode | ReleasedTree = node
        self._folded: ReleasedTree | None = None
        """The released tree that the node was parsed from again, if it was."""
        self.module = module
        self.owner = owner
        self.outer = outer
        self._source: Source | None = None
        self._shift = 0
        self.name = getattr(node, "name", "<lambda>")
        prefix = owner.qualname if owner is not None else outer.qualname if outer is not None else ""
        self.qualname: str = f"{prefix}.{self.name}" if prefix else self.name
        self.is_passthrough: bool | None = None
        """Cache: whether it changes nothing about a function that it decorates."""
        self.uses: dict[str, tuple[str, bool]] | None = None
        """Cache: names that the body uses as only a tensor can be used, how, and whether an array can be, too."""

    @property
    def node(self) -> FunctionNode:
        if isinstance(self._node, ReleasedTree):
            self._folded = self._node
            self._node = self._folded.reparsed(self.module.source.text)
            self.module.reparsed.append(self)
        return self._node

    def release_trees(self) -> None:
        """Release the syntax tree until `node` is read again."""
        if self._folded is not None:
            self._node, self._folded = self._folded, None
        elif isinstance(self._node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._node = ReleasedTree(self._node, self.source.lines)

    @property
    def source(self) -> Source:
        """The text to which the nodes' positions belong: the module's, or the function's own after an edit of it."""
        return self.outer.source if self.outer is not None else self._source or self.module.source

    @property
    def shift(self) -> int:
        """How many lines the function has moved down since it was parsed."""
        return self.outer.shift if self.outer is not None else self._shift

    def moved(self, lines: int) -> None:
        """The function moved down by so many lines."""
        self._shift += lines

    def replaced(self, node: FunctionNode, source: Source) -> None:
        """Take the new tree of a function whose text was edited; name and decorators are as before."""
        self._node, self._folded = node, None
        self._source = source
        self._shift = 0
        self.uses = self.is_passthrough = None
        for name in ("parameters", "defaults", "is_abstract", "assigns", "grows", "registers", "bindings"):
            self.__dict__.pop(name, None)

    @cached_property
    def parameters(self) -> list[ast.arg]:
        """The positional parameters, in order."""
        return [*self.node.args.posonlyargs, *self.node.args.args]

    @cached_property
    def defaults(self) -> dict[str, ast.expr]:
        arguments = self.node.args
        late = self.parameters[len(self.parameters) - len(arguments.defaults) :]
        found = {p.arg: d for p, d in zip(late, arguments.defaults, strict=True)}
        by_name = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        found.update({p.arg: d for p, d in by_name if d is not None})
        return found

    @cached_property
    def assigns(self) -> list[tuple[str, ast.stmt, ast.expr]]:
        """`self.name = value` in a method: name, statement and value, in the order of the text."""
        if self.is_static or not self.parameters or isinstance(self.node, ast.Lambda):
            return []
        return list(assignments(self.node.body, self.parameters[0].arg))

    @cached_property
    def grows(self) -> list[tuple[str, ast.expr, bool]]:
        """`self.name.append(value)` and its like: name, value, and whether the value is a sequence of elements. What
        `self` itself is made of, or grows by, has the name `ELEMENTS`."""
        if self.is_static or not self.parameters or isinstance(self.node, ast.Lambda):
            return []
        return list(growths(self.node.body, self.parameters[0].arg))

    @cached_property
    def registers(self) -> list[tuple[str, str, ast.Call]]:
        """`self.register_buffer("name", ...)` and the like: name, method called, call."""
        return [] if isinstance(self.node, ast.Lambda) else list(registrations(self.node.body))

    @property
    def decorators(self) -> list[ast.expr]:
        if isinstance(self._node, ReleasedTree):
            return self._node.decorators
        return getattr(self._node, "decorator_list", [])

    def decorated_with(self, *names: str) -> bool:
        """Whether a decorator, or what it calls, has one of these qualified names."""
        return any(self.module.qualified(d.func if isinstance(d, ast.Call) else d) in names for d in self.decorators)

    @cached_property
    def bindings(self) -> Bindings:
        return Bindings(self.node)

    @cached_property
    def is_static(self) -> bool:
        return self.decorated_with("builtins.staticmethod")

    @cached_property
    def is_classmethod(self) -> bool:
        return self.decorated_with("builtins.classmethod")

    @cached_property
    def is_property(self) -> bool:
        return self.decorated_with("builtins.property", "functools.cached_property", "abc.abstractproperty")

    @cached_property
    def is_abstract(self) -> bool:
        """Whether the body only has a docstring or raises: the result is known from the annotation alone."""
        return is_stub(self.node)


class ClassInfo:
    """A class: its bases, methods, class-level names, and what its methods assign to `self`."""

    def __init__(self, node: ast.ClassDef, module: ModuleInfo, outer: str = "") -> None:
        self.node = node
        self.module = module
        self.name = node.name
        self.qualname = f"{outer}.{node.name}" if outer else node.name
        self.is_inner = bool(outer)
        self.methods: dict[str, FunctionInfo] = {}
        self.setters: dict[str, FunctionInfo] = {}
        self.names: dict[str, ast.expr] = {}
        self.annotations: dict[str, ast.expr] = {}
        self.classes: dict[str, ClassInfo] = {}
        self.attribute_cache: dict[str, Value | None] = {}
        self.chain: list[ClassInfo] | None = None  # cache: the class and its bases
        for statement in statements_of(node.body):
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                marks = {getattr(d, "attr", "") for d in statement.decorator_list}
                if "setter" in marks:
                    self.setters[statement.name] = FunctionInfo(statement, module, self)
                elif "deleter" not in marks:
                    self.methods[statement.name] = FunctionInfo(statement, module, self)
            elif isinstance(statement, ast.ClassDef):
                self.classes[statement.name] = ClassInfo(statement, module, self.qualname)
            else:
                self._name(statement)

    @cached_property
    def assigned(self) -> dict[str, list[tuple[FunctionInfo, ast.stmt, ast.expr]]]:
        """`self.name = value` in any method: name -> (method, statement, value), in the order of the text."""
        found: dict[str, list[tuple[FunctionInfo, ast.stmt, ast.expr]]] = {}
        for method in self.methods.values():
            for name, statement, value in method.assigns:
                found.setdefault(name, []).append((method, statement, value))
        return found

    @cached_property
    def grown(self) -> dict[str, list[tuple[FunctionInfo, ast.expr, bool]]]:
        """`self.name.append(value)` in any method: name -> (method, value, whether that is a sequence of elements)."""
        found: dict[str, list[tuple[FunctionInfo, ast.expr, bool]]] = {}
        for method in self.methods.values():
            for name, value, is_sequence in method.grows:
                found.setdefault(name, []).append((method, value, is_sequence))
        return found

    @cached_property
    def registered(self) -> dict[str, tuple[str, FunctionInfo, ast.Call]]:
        """`self.register_buffer("name", ...)` and the like: name -> (method called, in which method, call). A name that
        is put together, `f"layer{i}"`, is written with a star, `layer*`."""
        found: dict[str, tuple[str, FunctionInfo, ast.Call]] = {}
        for method in self.methods.values():
            for name, how, call in method.registers:
                found.setdefault(name, (how, method, call))
        return found

    def define_again(self, statements: Iterable[ast.stmt]) -> None:
        """Read the names and annotations of the body's statements again; methods and inner classes stay."""
        self.names.clear()
        self.annotations.clear()
        for statement in statements_of(statements):
            self._name(statement)

    def reread(self) -> None:
        """Drop what methods assign: the text of one changed."""
        for name in ("assigned", "grown", "registered"):
            self.__dict__.pop(name, None)

    def _name(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    self.names[target.id] = statement.value
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            self.annotations[statement.target.id] = statement.annotation
            if statement.value is not None:
                self.names[statement.target.id] = statement.value

    def release_trees(self) -> None:
        """Release the methods' syntax trees; what they assign is read before."""
        self.assigned, self.grown, self.registered  # noqa: B018
        self.node.body.clear()
        for method in (*self.methods.values(), *self.setters.values()):
            method.release_trees()
        for cls in self.classes.values():
            cls.release_trees()

    def close(self) -> None:
        """Release all definitions."""
        for cls in self.classes.values():
            cls.close()
        for kept in (self.methods, self.setters, self.classes, self.names, self.annotations, self.attribute_cache):
            kept.clear()
        for name in ("assigned", "registered"):
            self.__dict__.pop(name, None)
        self.chain = None

    def is_dataclass(self) -> bool:
        names = ("dataclasses.dataclass", "flax.struct.dataclass", "attr.s", "attrs.define")
        return any(
            self.module.qualified(d.func if isinstance(d, ast.Call) else d) in names for d in self.node.decorator_list
        )


#: one of a class, by name
Attribute = tuple[ClassInfo, str]


class ModuleInfo:
    """The top level of one source."""

    def __init__(self, source: Source, name: str) -> None:
        assert source.tree is not None
        self.source = source
        self.name = name
        self.imports: dict[str, str] = {}
        self.functions: dict[str, FunctionInfo] = {}
        self.redefined: set[str] = set()
        self.classes: dict[str, ClassInfo] = {}
        self.globals: dict[str, list[ast.expr]] = {}
        self.annotations: dict[str, ast.expr] = {}
        self.stars: list[str] = []
        self.value_cache: dict[str, Value] = {}
        self.are_trees_released = False
        self.reparsed: list[FunctionInfo] = []
        """Functions whose syntax trees were parsed again after their release."""
        self.switched: dict[str, bool] = {}
        """Cache: whether the text sets an attribute to another value than False."""
        self.reaching: list[tuple[list[str], bool, frozenset[str]]] | None = None
        """Cache: for each definition the names that it is reached by, whether its text may compile something, and the
        words in it."""
        self.flags: SwitchedNames | None = None
        """The same for all attributes, while edits of the text are followed."""
        self.bound = BoundNames()
        self.package = name if source.path.endswith("__init__.py") else name.rpartition(".")[0]
        for statement in statements_of(source.tree.body):
            self._define(statement)

    def release_trees(self) -> None:
        """Release the syntax trees of all functions until they are needed: of an imported module few are."""
        self.are_trees_released = True
        for cls in self.classes.values():
            cls.release_trees()
        for function in self.functions.values():
            function.release_trees()
        self.source.release_trees()

    def release_trees_again(self) -> None:
        """Release the syntax trees that were parsed again in the meantime."""
        for function in self.reparsed:
            function.release_trees()
        self.reparsed.clear()

    def close(self) -> None:
        """Release all definitions: they and the module refer to each other, so only the garbage collector would find
        them unreachable."""
        for cls in self.classes.values():
            cls.close()
        for kept in (self.functions, self.classes, self.globals, self.annotations, self.value_cache):
            kept.clear()
        self.source.release_trees()

    def all_functions(self) -> Iterator[FunctionInfo]:
        """The functions of the top level, and the methods of its classes."""
        yield from self.functions.values()
        for cls in self.classes.values():
            yield from cls.methods.values()

    @cached_property
    def rebound(self) -> frozenset[str]:
        """Globals that a function may assign."""
        if not says_global(self.source.text):
            return frozenset()
        assert self.source.tree is not None
        return frozenset(n for node in ast.walk(self.source.tree) if isinstance(node, ast.Global) for n in node.names)

    def define_again(self, statements: Iterable[ast.stmt]) -> None:
        """Read the imports and globals of the top level's statements again; functions and classes stay."""
        for table in (self.imports, self.globals, self.annotations, self.stars):
            table.clear()
        for statement in statements_of(statements):
            if not isinstance(statement, _SCOPES):
                self._define(statement)

    def _define(self, statement: ast.stmt) -> None:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self.redefined |= {statement.name} & self.functions.keys()
            self.functions[statement.name] = FunctionInfo(statement, self)
        elif isinstance(statement, ast.ClassDef):
            self.classes[statement.name] = ClassInfo(statement, self)
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            self.imports.update(self.imported(statement))
            if isinstance(statement, ast.ImportFrom) and any(a.name == "*" for a in statement.names):
                self.stars.append(self.absolute(statement))
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                for name, value in bound_names(target, statement.value):
                    self.globals.setdefault(name, []).append(value)
        elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)) and isinstance(statement.target, ast.Name):
            if isinstance(statement, ast.AnnAssign):
                self.annotations[statement.target.id] = statement.annotation
            if statement.value is not None:
                self.globals.setdefault(statement.target.id, []).append(statement.value)
        elif isinstance(statement, ast.For):
            for name, value in loop_variables(statement):
                self.globals.setdefault(name, []).append(value)

    def absolute(self, statement: ast.ImportFrom) -> str:
        if not statement.level:
            return statement.module or ""
        package = self.package.split(".") if self.package else []
        package = package[: len(package) - statement.level + 1] if statement.level > 1 else package
        return ".".join([*package, *([statement.module] if statement.module else [])])

    def imported(self, statement: ast.Import | ast.ImportFrom) -> dict[str, str]:
        """The local names that an import binds, with their qualified names."""
        if isinstance(statement, ast.Import):
            return {
                a.asname or a.name.partition(".")[0]: a.name if a.asname else a.name.partition(".")[0]
                for a in statement.names
            }
        base = self.absolute(statement)
        return {a.asname or a.name: f"{base}.{a.name}" for a in statement.names if a.name != "*"}

    def qualified(self, node: ast.expr) -> str | None:
        """The qualified name of a dotted expression as seen at the top level; a builtin's is `builtins.name`."""
        text = dotted(node)
        if text is None:
            return None
        first, dot, rest = text.partition(".")
        if first in self.imports:
            return self.imports[first] + dot + rest
        if first in self.functions or first in self.classes or first in self.globals:
            return f"{self.name}.{text}" if self.name else text
        return f"builtins.{text}"

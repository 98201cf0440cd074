"""Which targets a file holds, by reading it: nothing of it runs, so a file that hangs at import has its targets, too.

The rule is that of `graphmend verify FILE` (`dynamo/worker/discover.py`), which looks at the imported module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from graphmend.analysis.interprocedural.session import AnalysisSession
from graphmend.analysis.lattice.external import ExternalName
from graphmend.analysis.program.definitions import ClassInfo, ModuleInfo
from graphmend.analysis.program.entities import Class
from graphmend.analysis.program.project import Project
from graphmend.analysis.resolution.classes import LIBRARY_MODULES
from graphmend.analysis.resolution.names import named
from graphmend.analysis.settings import Settings
from graphmend.analysis.syntax.nodes import statements_of
from graphmend.analysis.syntax.source import Source

#: everything in a file that can be run, in one go
WHOLE = ("",)


def targets_of(source: Source, project: Project) -> tuple[str, ...]:
    """The names of what a file compiles at its top level, and of its model classes that are no part of another one;
    `WHOLE` for a text that cannot be read as Python, so that somebody is told.
    """
    module = project.read(source)
    if module is None:
        return WHOLE
    compiled = dict.fromkeys(_compiled(module))
    return (*compiled, *(name for name in _models(module, project) if name not in compiled))


def _compiled(module: ModuleInfo) -> Iterator[str]:
    """Names that an import binds to what `torch.compile` makes, as a decorator or a call."""
    assert module.source.tree is not None
    for statement in _at_import(module.source.tree.body):
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            if any(_is_compile(module, node) for node in statement.decorator_list):
                yield statement.name
        elif isinstance(statement, ast.Assign):
            yield from (name for target in statement.targets for name in _bound(module, target, statement.value))
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            yield from _bound(module, statement.target, statement.value)


def _bound(module: ModuleInfo, target: ast.expr, value: ast.expr) -> Iterator[str]:
    """The names of a target that an assignment binds to what is compiled, those of a tuple one by one."""
    pair = (target, value)
    if all(isinstance(each, (ast.Tuple, ast.List)) for each in pair):
        inner, values = (each.elts for each in pair if isinstance(each, (ast.Tuple, ast.List)))
        if len(inner) == len(values) and not any(isinstance(each, ast.Starred) for each in (*inner, *values)):
            for one, other in zip(inner, values, strict=True):
                yield from _bound(module, one, other)
    elif isinstance(target, ast.Name) and _is_compile(module, value, called=True):
        yield target.id


def _at_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that an import executes: not those of `if __name__ == "__main__"`."""
    for statement in body:
        if not (isinstance(statement, ast.If) and "__name__" in _used([statement.test])):
            yield from statements_of([statement])


def _is_compile(module: ModuleInfo, node: ast.expr, *, called: bool = False) -> bool:
    """`torch.compile`, or what a call of it gives, or a call of that; where it must be `called`, one of the latter."""
    while isinstance(node, ast.Call):
        node, called = node.func, False
    return not called and module.qualified(node) == "torch.compile"


def _models(module: ModuleInfo, project: Project) -> list[str]:
    session = AnalysisSession(module, project, Settings(), ())
    lines = {name: _Lineage(session, info) for name, info in module.classes.items()}
    own = {name: line for name, line in lines.items() if line.can_be_called}
    used = {name for info in module.classes.values() for name in _used(info.node.body) if name != info.name}
    bases = {base.name for line in own.values() for base in line.classes[1:]}
    return [name for name in own if name not in used and name not in bases] or list(own)


class _Lineage:
    """A class with its bases, those with parameters (`Base[int]`), too: `classes` have source, `outside` has names."""

    def __init__(self, session: AnalysisSession, info: ClassInfo) -> None:
        self.classes: list[ClassInfo] = []
        self.outside: set[str] = set()
        stack = [info]
        while stack:
            one = stack.pop(0)
            if one in self.classes:
                continue
            self.classes.append(one)
            nodes = (base.value if isinstance(base, ast.Subscript) else base for base in one.node.bases)
            values = [named(session, one.module, node) for node in nodes]
            self.outside |= {value.name for value in values if isinstance(value, ExternalName)}
            stack = [value.info for value in values if isinstance(value, Class)] + stack

    @property
    def can_be_called(self) -> bool:
        """Whether it is a module that has a `forward`, and no abstract method."""
        modules = {name for name in self.outside if _is_module(name)}
        own = any("forward" in cls.methods or "forward" in cls.names for cls in self.classes)
        theirs = any(name.startswith("torch.nn.") and not name.endswith(_WITHOUT_FORWARD) for name in modules)
        return bool(modules) and (own or theirs) and not self._is_abstract()

    def _is_abstract(self) -> bool:
        metaclass = any(word.arg == "metaclass" for cls in self.classes for word in cls.node.keywords)
        if not metaclass and "abc.ABC" not in self.outside:
            return False
        methods = {name: method for cls in reversed(self.classes) for name, method in cls.methods.items()}
        return any(method.decorated_with("abc.abstractmethod") for method in methods.values())


def _is_module(name: str) -> bool:
    """Whether a class without source is one of torch's modules, or a library's base of models."""
    last = name.rpartition(".")[2]
    ours = name.startswith("torch.nn.") and not name.startswith(("torch.nn.parameter.", "torch.nn.utils."))
    return (ours and not last.endswith(("Parameter", "Buffer"))) or last in LIBRARY_MODULES


def _used(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The names that code uses; those in annotations, and in questions what an object is, make nothing."""
    for node in nodes:
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _QUESTIONS:
            yield from _used(node.args[:1])
        else:
            for field, value in ast.iter_fields(node):
                if field not in ("annotation", "returns"):
                    inner = value if isinstance(value, list) else [value]
                    yield from _used(each for each in inner if isinstance(each, ast.AST))


#: torch's modules that only hold others, or only share code
_WITHOUT_FORWARD = tuple(
    f".{name}"
    for name in "Module Container ModuleDict ModuleList ParameterDict ParameterList RNNBase RNNCellBase".split()
)

_QUESTIONS = frozenset({"isinstance", "issubclass"})

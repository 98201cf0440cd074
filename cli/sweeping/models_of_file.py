"""Which targets a file holds, by reading it: nothing of it runs, so a file that hangs at import has its targets, too.

The rule is that of `graphmend verify FILE` (`dynamo/worker/discover.py`), which looks at the imported module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from graphmend.analysis.interprocedural.session import AnalysisSession
from graphmend.analysis.program.definitions import ClassInfo, ModuleInfo
from graphmend.analysis.program.project import Project
from graphmend.analysis.resolution.classes import find_method, is_module_class
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
        elif isinstance(statement, ast.Assign) and _is_compile(module, statement.value, called=True):
            yield from (target.id for target in statement.targets if isinstance(target, ast.Name))


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
    own = {
        name: info
        for name, info in module.classes.items()
        if is_module_class(session, info) and _can_be_called(session, info)
    }
    used = {name for info in module.classes.values() for name in _used(info.node.body) if name != info.name}
    bases = {name for info in own.values() for base in info.node.bases for name in _used([base])}
    return [name for name in own if name not in used and name not in bases] or list(own)


def _can_be_called(session: AnalysisSession, info: ClassInfo) -> bool:
    abstract = any(method.decorated_with("abc.abstractmethod") for method in info.methods.values())
    return not abstract and find_method(session, info, "forward") is not None


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


_QUESTIONS = frozenset({"isinstance", "issubclass"})

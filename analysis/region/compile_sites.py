"""Compile sites: calls, decorators and trainers' options by which a module compiles something."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.program.definitions import FunctionInfo, ModuleInfo
from graphmend.analysis.region.dynamo_config import FLAG_WORDS
from graphmend.analysis.syntax.nodes import dotted
from graphmend.analysis.syntax.traversal import push_children, walk

if TYPE_CHECKING:
    from graphmend.analysis.resolution.interface import ProgramView


COMPILE = frozenset({"torch.compile", "torch._dynamo.optimize", "torch.compiler.compile"})


EXPORT = frozenset({"torch.export.export", "torch.export.export_for_training"})


#: options of trainers that compile the model they are given: keyword -> values that do not
_TRAINERS = {"torch_compile": (False, None), "dynamo_backend": ("no", "NO", None)}


def compiled_by_trainer(module: ModuleInfo) -> ast.Call | None:
    """A call such as `TrainingArguments(torch_compile=True)` or `Accelerator(dynamo_backend="inductor")`."""
    text = module.source.text
    if not any(f"{name}=" in text for name in _TRAINERS):
        return None
    assert module.source.tree is not None
    for node in walk(module.source.tree):
        for keyword in node.keywords if isinstance(node, ast.Call) else ():
            off = _TRAINERS.get(keyword.arg or "")
            if off is not None and not (isinstance(keyword.value, ast.Constant) and keyword.value.value in off):
                assert isinstance(node, ast.Call)
                return node
    return None


def may_compile(text: str) -> bool:
    """Whether a text may compile anything, by its words: much faster than a look through its syntax tree."""
    if not any(word in text for word in ("compile", "optimize", "export")):
        return False
    return any(_compiles(text, found.start()) for found in _WORDS.finditer(text))


def says_what_is_traced(text: str) -> bool:
    """Whether a part of a module may decide what is compiled, or in which mode."""
    return may_compile(text) or any(word in text for word in (*FLAG_WORDS, *(f"{name}=" for name in _TRAINERS)))


_WORDS = re.compile(r"(?:compile|optimize|export)\b")


def _compiles(text: str, at: int) -> bool:
    """Whether a word may refer to a compiling function: an imported name, an attribute, a decorator; no comment."""
    before = text[text.rfind("\n", 0, at) + 1 : at]
    if not before.endswith((".", "import ", "@", ", ")) or before.endswith((" re.", "regex.")):
        return False
    return not before.lstrip().startswith("#")


def shortened(node: ast.expr) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else text[:57] + "..."


def compile_call(session: ProgramView, module: ModuleInfo, node: ast.expr) -> ast.Call | None:
    """The call that holds the options, if an expression is `torch.compile` or makes it with options; else None."""
    for _ in range(len(module.globals) + 1):
        if module.qualified(node) in COMPILE:
            return ast.copy_location(ast.Call(node, [], []), node)
        if isinstance(node, ast.Call):
            name = module.qualified(node.func)
            is_partial = name == "functools.partial" and node.args and module.qualified(node.args[0]) in COMPILE
            return node if is_partial or (name in COMPILE and not node.args) else None
        if not (isinstance(node, ast.Name) and node.id in module.globals):
            return None
        node = module.globals[node.id][0]  # a name for it; names may stand in a circle
    return None


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


class CompileSite(NamedTuple):
    """A call that may compile something, or a decorated function."""

    scope: FunctionInfo | None
    """The function around it."""
    node: ast.Call | ast.FunctionDef | ast.AsyncFunctionDef
    loops: list[ast.comprehension]
    """The loops of the comprehension around it."""


def compile_sites(module: ModuleInfo) -> Iterator[CompileSite]:
    assert module.source.tree is not None
    scopes: dict[ast.AST, FunctionInfo] = {f.node: f for f in module.all_functions()}
    names = {"compile", "optimize", "export", *(n for n, q in module.imports.items() if q in COMPILE | EXPORT)}
    stack: list[tuple[ast.AST, FunctionInfo | None, list[ast.comprehension]]] = [(module.source.tree, None, [])]
    while stack:
        node, scope, loops = stack.pop()
        decorators: list[ast.expr] = []
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            decorators = node.decorator_list
            if decorators:
                yield CompileSite(scope, node, loops)
            scope, loops = scopes.get(node, scope), []
        elif isinstance(node, ast.Call):
            text = dotted(node.func)
            if (text is not None and text.rpartition(".")[2] in names) or isinstance(node.func, ast.Call):
                yield CompileSite(scope, node, loops)
        elif isinstance(node, _COMPREHENSIONS):
            loops = node.generators
        below: list[ast.AST] = []
        push_children(node, below)
        stack.extend((child, scope, loops) for child in below if child not in decorators)

"""Classes of the project that the checked file does not import: a model takes an untyped `config`, and `GPTConfig`
stands in a file beside it; it takes an `encoder`, whose class stands in another.

Files are read as text. One is imported only where it defines the class that is wanted and nothing at its top level
runs: imports, definitions, constants.
"""

from __future__ import annotations

import ast
import functools
import importlib
import os
import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

from . import files

_CONFIG = re.compile(
    r"^class +(\w*(?:Config|Args|Arguments|Params|Options|Settings|Cfg)\w*)\b|^@(?:\w+\.)*dataclass", re.MULTILINE
)
_SKIPPED = frozenset({"tests", "test"})
_QUIET = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Found(NamedTuple):
    """A class in a file: the names of its fields and constructor's parameters."""

    name: str
    module: str
    fields: frozenset[str]


def with_fields(path: str, wanted: set[str]) -> Iterator[tuple[str, type]]:
    """Configuration classes beside a file that have all of these fields, those with the fewest others first."""
    fitting = [found for found in _classes(files.import_root(path)) if wanted and wanted <= found.fields]
    for found in sorted(fitting, key=lambda each: (len(each.fields), each.module, each.name)):
        value = _imported(found)
        if value is not None:
            yield found.name, value


def named(path: str, name: str) -> type | None:
    """The class of a name beside a file: of a configuration, of a module that is imported already, or of any other."""
    root = files.import_root(path)
    found = (_imported(each) for each in _classes(root) if each.name == name)
    return next((value for value in (*found, _loaded(root, name)) if value is not None), None) or _beside(root, name)


def _loaded(root: str, name: str) -> type | None:
    for module in list(sys.modules.values()):
        value = vars(module).get(name) if isinstance(module, ModuleType) else None
        own = isinstance(value, type) and value.__module__ == module.__name__ and value.__name__ == name
        if own and os.path.abspath(getattr(module, "__file__", None) or "").startswith(os.path.join(root, "")):
            return value
    return None


def _beside(root: str, name: str) -> type | None:
    """The class of that name in the first file that defines one."""
    defines = re.compile(rf"^class +{re.escape(name)}\b", re.MULTILINE)
    for path in files.walk(root, skipped=_SKIPPED):
        module = os.path.relpath(path, root)[: -len(".py")].replace(os.sep, ".").removesuffix(".__init__")
        if defines.search(files.text_of(path)) and all(map(str.isidentifier, module.split("."))) and only_defines(path):
            return _imported(Found(name, module, frozenset()))
    return None


def _imported(found: Found) -> type | None:
    try:
        value = getattr(importlib.import_module(found.module), found.name, None)
    except Exception:  # a neighbour that cannot be imported is none of the user's concern here
        return None
    return value if isinstance(value, type) else None


@functools.lru_cache(maxsize=4)
def _classes(root: str) -> tuple[Found, ...]:
    found: list[Found] = []
    for path in files.walk(root, skipped=_SKIPPED):
        tree = files.tree_of(path) if _CONFIG.search(files.text_of(path)) is not None else None
        if tree is None or not os.path.basename(path).removesuffix(".py").isidentifier():
            continue
        if only_defines(path):
            module = os.path.relpath(path, root)[: -len(".py")].replace(os.sep, ".")
            classes = (node for node in tree.body if isinstance(node, ast.ClassDef))
            found += [Found(node.name, module, _fields(node)) for node in classes]
    return tuple(found)


def only_defines(path: str) -> bool:
    """Whether nothing runs at the top level of a file, so that importing it does nothing else."""
    tree = files.tree_of(path)
    return tree is not None and all(map(_is_quiet, tree.body))


def _is_quiet(node: ast.stmt) -> bool:
    """Whether a statement of the top level only defines something."""
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        return node.value is None or not any(isinstance(n, (ast.Call, ast.Await)) for n in ast.walk(node.value))
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test) or "__name__" in ast.unparse(node.test)
    return isinstance(node, _QUIET)


def _fields(node: ast.ClassDef) -> frozenset[str]:
    names: set[str] = set()
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            names.add(part.target.id)
        elif isinstance(part, ast.Assign):
            names.update(target.id for target in part.targets if isinstance(target, ast.Name))
        elif isinstance(part, ast.FunctionDef):
            names.add(part.name)
            if part.name == "__init__":
                names.update(a.arg for a in (*part.args.args[1:], *part.args.kwonlyargs))
                targets = (n for n in ast.walk(part) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
                names.update(target.attr for target in targets)
    return frozenset(names)


def attributes_of(source: str, parameter: str | None = None) -> list[str]:
    """What is read of a name, or of the attribute of that name, anywhere in a text; of anything where no name is given.
    What is called is left out.
    """
    owner = r"(?<=[\w\])])" if parameter is None else rf"\b{re.escape(parameter)}"
    found = re.findall(owner + r"\.([A-Za-z_]\w*)\b(?!\s*(?:\(|=(?!=)))", source)
    return list(dict.fromkeys(name for name in found if not name.startswith("__")))


def text_of(module: Any) -> str:
    """A module's source; "" where there is none."""
    import inspect

    try:
        return inspect.getsource(module)
    except (OSError, TypeError):
        return ""

"""What the place of a statement means for it: who would see its exceptions, what its function is given to and called
by, what it asks of its own values. Whether gradients are recorded there says `FunctionFacts.gradients`.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.facts.function_facts import above as nodes_around
from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Static, Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import stores
from graphmend.transforms.code.liveness import parameters
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


@answers("context")
def observed(facts: FunctionFacts, statement: ast.stmt) -> bool:
    """Is there a `try`, or a context that swallows exceptions, in the function that would see one of a statement?"""
    if guarding_try(facts, statement) is not None:
        return True
    around = [item.context_expr for a in facts.ancestors(statement) if isinstance(a, ast.With) for item in a.items]
    return any(isinstance(c, ast.Call) and _module_name(facts, c.func) in _SWALLOW for c in around)


@answers("context")
def guards(facts: FunctionFacts, statement: ast.stmt) -> Iterator[ast.Try | ast.With]:
    """What around a statement goes on where it raises, from the inside out: a `try` with its handlers, or with what it
    does in the end, and a context that swallows exceptions.
    """
    inside: ast.AST = statement
    for above in facts.ancestors(statement):
        if isinstance(above, ast.Try) and (above.finalbody or (above.handlers and inside in above.body)):
            yield above
        elif isinstance(above, ast.With):
            calls = (item.context_expr for item in above.items if isinstance(item.context_expr, ast.Call))
            if any(_module_name(facts, call.func) in _SWALLOW for call in calls):
                yield above
        inside = above


class Context(NamedTuple):
    """One of the contexts of a `with`."""

    block: ast.With
    manager: ast.expr


@answers("context")
def contexts(facts: FunctionFacts, statement: ast.stmt) -> Iterator[Context]:
    """The contexts around a statement that may see that it raises, from the inside out: all but those of torch, and
    what only stands in the place of one.
    """
    for above in facts.ancestors(statement):
        if isinstance(above, ast.With):
            managers = (item.context_expr for item in reversed(above.items))
            yield from (Context(above, manager) for manager in managers if not _is_blind(facts, manager))


def _is_blind(facts: FunctionFacts, node: ast.expr) -> bool:
    value = facts.value(node)
    made = value.cls if isinstance(value, ExternalInstance) else ""
    named = _module_name(facts, node.func if isinstance(node, ast.Call) else node)
    of_torch = any(name.startswith("torch.") or name == "contextlib.nullcontext" for name in (made, named))
    return of_torch or (isinstance(value, Static) and value.type == "device")


#: contexts behind which the program goes on after an exception
_SWALLOW = ("contextlib.suppress", "pytest.raises")

#: what reads the names of the function that calls it as data, and what does without arguments
_READS_NAMES = ("eval", "exec", "sys._getframe", "inspect.currentframe", "inspect.stack")
_READS_NAMES_BARE = ("locals", "vars", "dir")


@answers("names")
def reading_names(facts: FunctionFacts) -> str | None:
    """What the function calls that sees its names, and whatever they mean now."""
    for node in nodes_in(facts.function):
        if not isinstance(node, ast.Call):
            continue
        name = _module_name(facts, node.func)
        if name in _READS_NAMES or (name in _READS_NAMES_BARE and not node.args):
            return ast.unparse(node)
    return None


#: what reads the names of a module, by methods that ask for one name
_ASKS_FOR_ONE = ("get", "setdefault", "pop", "update")


_HIDDEN: ContextVar[bool] = ContextVar("imports are hidden", default=False)


@contextmanager
def hidden_imports() -> Iterator[None]:
    """Mends are made for who hides from the program what they import."""
    token = _HIDDEN.set(True)
    try:
        yield
    finally:
        _HIDDEN.reset(token)


@answers("names")
def listing_module(facts: FunctionFacts) -> str | None:
    """What lists the names of the module and would see an import that is added."""
    if _HIDDEN.get():
        return None
    tree, text = facts.source.tree, facts.source.text
    if tree is None or not any(f"{name}(" in text for name in ("globals", *_READS_NAMES_BARE)):
        return None
    of_functions = {n for f in nodes_in(tree) if isinstance(f, _SCOPES) for n in nodes_in(f) if n is not f}
    for node in nodes_in(tree):
        if not isinstance(node, ast.Call) or node.args or not isinstance(node.func, ast.Name):
            continue
        name = node.func.id
        if (name == "globals" or (name in _READS_NAMES_BARE and node not in of_functions)) and _is_listed(tree, node):
            return ast.unparse(node)
    return None


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def _is_listed(tree: ast.AST, names: ast.Call) -> bool:
    """Is a dictionary of names used for more than single ones of them?"""
    for node in nodes_in(tree):
        match node:
            case ast.Subscript(value=value) | ast.Compare(left=ast.Constant(), comparators=[value]) if value is names:
                return False
            case ast.Attribute(value=value, attr=attr) if value is names:
                return attr not in _ASKS_FOR_ONE
    return True


@answers("context")
def guarding_try(facts: FunctionFacts, statement: ast.stmt) -> ast.Try | None:
    """The innermost `try` with handlers whose body a statement stands in."""
    inside: ast.AST = statement
    for above in facts.ancestors(statement):
        if isinstance(above, ast.Try) and above.handlers and inside in above.body:
            return above
        inside = above
    return None


#: decorators that keep results: Dynamo traces the function below them each time
_CACHES = ("functools.lru_cache", "functools.cache", "functools.cached_property")


@answers("context")
def cached_around(facts: FunctionFacts) -> str | None:
    """The function of the module whose results are kept, if the one of the finding runs for it."""
    tree = facts.source.tree
    cached = _cached(facts) if tree is not None and "cache" in facts.source.text else {}
    inside = [facts.function, *(n for n in facts.ancestors(facts.function))]
    if any(n in cached.values() for n in inside) or facts.function in cached.values():
        return facts.function.name
    for name, function in cached.items():
        if facts.function.name in _called_from(facts, function):
            return name
    return None


def _cached(facts: FunctionFacts) -> dict[str, ast.AST]:
    """The functions of the module whose results are kept."""
    assert facts.source.tree is not None
    functions, calls = _functions_and_calls(facts.source.tree)
    by_name = {node.name: node for node in functions}
    found: dict[str, ast.AST] = {n.name: n for n in functions if any(_keeps(facts, d) for d in n.decorator_list)}
    for call in calls:
        if isinstance(name := call.args[0], ast.Name) and name.id in by_name and _keeps(facts, call.func):
            found[name.id] = by_name[name.id]
    return found


@lru_cache(maxsize=4)
def _functions_and_calls(tree: ast.Module) -> tuple[list[ast.FunctionDef | ast.AsyncFunctionDef], list[ast.Call]]:
    """The functions of a module, and the calls in it with one argument: `f = lru_cache(None)(g)`."""
    nodes = list(nodes_in(tree))
    functions = [n for n in nodes if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return functions, [n for n in nodes if isinstance(n, ast.Call) and len(n.args) == 1]


def _keeps(facts: FunctionFacts, node: ast.expr) -> bool:
    function = node.func if isinstance(node, ast.Call) else node
    name = _module_name(facts, function)
    return name in _CACHES or (
        name.rpartition(".")[2] in ("lru_cache", "cache", "cached_property", "memoize", "cached")
    )


def _module_name(facts: FunctionFacts, node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return facts.names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        return f"{_module_name(facts, node.value)}.{node.attr}"
    return ""


def _called_from(facts: FunctionFacts, function: ast.AST) -> set[str]:
    """The names that a function, and what it calls in the module, calls."""
    assert facts.source.tree is not None
    functions = {node.name: node for node in _functions_and_calls(facts.source.tree)[0]}
    found: set[str] = set()
    stack = [function]
    while stack:
        for node in nodes_in(stack.pop()):
            if isinstance(node, ast.Call):
                name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                if name in functions and name not in found:
                    found.add(name)
                    stack.append(functions[name])
    return found


#: what tells a tensor from one with the same numbers, by the kind of difference that it tells
_TELLS: dict[str, frozenset[str]] = {
    "strides": frozenset({"stride", "is_contiguous", "storage_offset", "dim_order", "suggest_memory_format"}),
    "aliasing": frozenset({"data_ptr", "untyped_storage", "storage", "is_set_to", "_base", "_is_view", "is_leaf"}),
    "gradients": frozenset({"requires_grad", "grad_fn"}),
}
_CLASSES_OF_COPIES = ("torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.nn.Buffer")


@answers("context")
def telling(facts: FunctionFacts, kinds: Collection[str]) -> str | None:
    """What the function asks that a difference of these kinds answers otherwise: a value that it computes would be
    another one.
    """
    names = frozenset[str]().union(*(_TELLS.get(kind, frozenset()) for kind in kinds))
    for node in nodes_in(facts.function) if names else ():
        if isinstance(node, ast.Attribute) and node.attr in names and not _stays_the_same(facts, node):
            return ast.unparse(node)
        if "aliasing" in kinds and _tells_tensors_apart(facts, node):
            return ast.unparse(node)
    return None


def _stays_the_same(facts: FunctionFacts, node: ast.Attribute) -> bool:
    """Is an attribute written, or read of what the function was given and never binds, which no mend makes another?"""
    if not isinstance(node.ctx, ast.Load):
        return True
    of = node.value
    return isinstance(of, ast.Name) and of.id in parameters(facts.function) and not stores(facts, of.id)


def _tells_tensors_apart(facts: FunctionFacts, node: ast.AST) -> bool:
    match node:
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot()], comparators=[right]):
            return all(isinstance(facts.value(side), Tensor) for side in (left, right))
        case ast.Call(func=ast.Name(id="id" | "type"), args=[one], keywords=[]):
            return isinstance(facts.value(one), Tensor)
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, of]):
            return any(_module_name(facts, n) in _CLASSES_OF_COPIES for n in nodes_in(of) if isinstance(n, ast.expr))
    return False


_TRANSFORMS = frozenset("vmap grad grad_and_value jacrev jacfwd hessian jvp vjp functionalize linearize".split())


@answers("context")
def transformed(facts: FunctionFacts) -> bool:
    """Is the function given to `torch.vmap` or one of `torch.func`'s transforms somewhere in the file, where a test on
    a tensor raises?
    """
    tree = facts.source.tree
    name = facts.function.name
    for node in nodes_in(tree) if tree is not None else ():
        if not isinstance(node, ast.Call) or not node.args:
            continue
        callee = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        given = node.args[0]
        named = given.attr if isinstance(given, ast.Attribute) else getattr(given, "id", "")
        if callee in _TRANSFORMS and named == name:
            return True
    return any(_last(d) in _TRANSFORMS for d in facts.function.decorator_list)


def _last(node: ast.expr) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


_Function = ast.FunctionDef | ast.AsyncFunctionDef
#: decorators that compile nothing
_COMPILES_NOTHING = frozenset(
    f"{folder}{name}" for folder in ("", "torch.") for name in ("no_grad()", "inference_mode()", "enable_grad()")
) | {"staticmethod", "classmethod"}


class Callers:
    """Which code of a file is certainly not traced: nothing that may be compiled calls it, as far as the file tells.

    Functions are followed to their callers: each use is a plain call, from code that is itself not traced.
    """

    def __init__(self, tree: ast.Module, parents: Mapping[ast.AST, ast.AST]) -> None:
        self._parents = parents
        self._seen: dict[_Function, bool] = {}
        self._named: dict[str, list[ast.AST]] = {}
        for node in nodes_in(tree):
            name = _mentioned(node)
            if name is not None:
                self._named.setdefault(name, []).append(node)

    @answers("context")
    def are_plain(self, node: ast.AST) -> bool:
        """Is the code around a node certainly not traced?"""
        around = list(nodes_around(self._parents, node))
        if any(isinstance(outer, ast.Lambda) for outer in around):
            return False
        return all(
            self._is_plain(outer) for outer in around if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef))
        )

    def _is_plain(self, function: _Function) -> bool:
        if function not in self._seen:
            self._seen[function] = True  # those that call each other are as plain as the others that call them
            self._seen[function] = self._is_own(function) and all(
                self._is_called(use) for use in self._named.get(function.name, ())
            )
        return self._seen[function]

    def _is_own(self, function: _Function) -> bool:
        """Does nobody but who names a function call it?"""
        if any(ast.unparse(decorator) not in _COMPILES_NOTHING for decorator in function.decorator_list):
            return False
        cls = self._parents[function]
        if not isinstance(cls, ast.ClassDef):
            return True
        return not (cls.bases or cls.keywords or cls.decorator_list or function.name.startswith("__"))

    def _is_called(self, use: ast.AST) -> bool:
        call = self._parents[use]
        return isinstance(call, ast.Call) and call.func is use and self.are_plain(use)


@answers("context")
def other_files_call(parents: Mapping[ast.AST, ast.AST], node: ast.AST) -> str | None:
    """The function through which code of another file may run the code around a node; None where only the file itself
    does: at its top level, and in what it defines where it is the program that runs.
    """
    found: str | None = None
    for outer in (node, *nodes_around(parents, node)):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found = outer.name
        elif isinstance(outer, ast.Lambda):
            found = "the lambda"
        elif isinstance(outer, ast.If) and _is_main(outer.test):
            return None
    return found


def _is_main(test: ast.expr) -> bool:
    match test:
        case ast.Compare(left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[ast.Constant(value="__main__")]):
            return True
    return False


def _mentioned(node: ast.AST) -> str | None:
    """The name that a node may mean a function by."""
    match node:
        case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
            return name
        case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *_]):
            return name
    return None

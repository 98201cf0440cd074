"""What a function of NumPy and plain Python does besides computing, as if it were called by a graph.

The graph hands copies of numbers and tensors to it, and calls it later than plain Python does. So it may change what it
makes itself and nothing else, it may not ask what an argument is but for its values, and what it reads of its module
must be the same whenever it is called. What is not known to be so is named.
"""

from __future__ import annotations

import ast
import builtins
import symtable
import textwrap
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Static
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.legality.names.replaced import is_lasting
from graphmend.transforms.legality.outside.host_memory import MadeNames

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_STATEMENTS = (
    ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.While, ast.If, ast.Return, ast.Raise, ast.Assert, ast.Pass,
    ast.Expr, ast.Break, ast.Continue, ast.FunctionDef, ast.Try, ast.With,
)  # fmt: skip
_MORE = (ast.Yield, ast.YieldFrom, ast.Await, ast.Starred)
#: methods of tensors, arrays, lists and texts that change nothing, and how many arguments are no place to write to
_METHODS = dict.fromkeys(
    "any all max min sum mean prod std var argmax argmin cumsum argsort nonzero round".split(), 1
) | (
    dict.fromkeys(
        "detach cpu numpy item tolist size dim numel long int float bool to view reshape copy astype unbind flatten "
        "squeeze unsqueeze transpose swapaxes repeat split join format".split(),
        9,
    )
)
#: of these only what the function makes itself may be the owner
_CHANGES = frozenset({"append", "extend", "insert", "sort", "reverse"})
_BUILTINS = frozenset(
    "abs all any bool divmod enumerate filter float int isinstance len list map max min pow range reversed round set "
    "sorted str sum tuple zip dict ValueError TypeError RuntimeError IndexError AssertionError".split()
)
#: attributes of arrays and tensors that a copy has as well
_SAME = frozenset({"shape", "dtype", "ndim", "size", "T", "itemsize"})
_CONSTANTS = frozenset(
    "pi e inf nan newaxis bool_ int_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 intp "
    "float_ double single".split()
)
#: functions of NumPy that change their first argument, and those that read and write files or other state
_INTO = frozenset("put put_along_axis place putmask copyto fill_diagonal shuffle at".split())
_STATE = frozenset(
    "save savez savez_compressed savetxt load loadtxt genfromtxt fromfile memmap open_memmap seed set_state get_state "
    "setstate getstate default_rng RandomState Generator Random SystemRandom seterr setbufsize set_printoptions nditer "
    "vectorize frompyfunc frombuffer fromiter lib".split()
)
#: how many arguments of a function of NumPy by position are none that it writes to; 1 for those that are not listed
_READ = (
    dict.fromkeys(
        "add subtract multiply divide true_divide floor_divide mod remainder power maximum minimum fmax fmin equal "
        "not_equal less less_equal greater greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or "
        "arctan2 hypot dot matmul take sum any all mean max min amax amin argmax argmin cumsum prod std var median "
        "argsort sort concatenate stack reshape tile broadcast_to expand_dims squeeze flip isin outer array asarray "
        "zeros ones empty zeros_like ones_like full_like unique searchsorted allclose array_equal transpose".split(),
        2,
    )
    | dict.fromkeys(
        "where arange linspace full clip roll repeat append delete pad digitize moveaxis swapaxes".split(), 3
    )
    | dict.fromkeys(["put_along_axis", "insert", "copyto", "put", "place", "putmask", "fill_diagonal", "at"], 4)
)
_DRAWS = ("numpy.random.", "random.")


def does_more(facts: FunctionFacts, function: ast.FunctionDef, outside: Collection[str] = ()) -> str | None:
    """What a function does besides computing, in a sentence; None where that is nothing. What some names hold was there
    before, whatever they are bound to.
    """
    facts = facts.within(function)
    if (read := _from_outside(facts, function)) is not None:
        return f"`{read}` may be another one when the graph runs"
    body = _Body(facts, function, MadeNames(facts, function, outside))
    nodes = (n for statement in function.body for n in nodes_in(statement))
    return next((f"`{_first_line(n)}` may do more than compute" for n in nodes if not body.computes(n)), None)


def _first_line(node: ast.AST) -> str:
    return ast.unparse(node).splitlines()[0]


def _from_outside(facts: FunctionFacts, function: ast.FunctionDef) -> str | None:
    """A name that a function reads of its module and that traced code may have changed, which Dynamo writes back only
    when the graph has run: neither an import, nor a builtin, nor a number or text that is bound once.
    """
    tree = facts.source.tree
    own = {n.id for n in nodes_in(function) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    own |= {n.arg for n in nodes_in(function) if isinstance(n, ast.arg)}
    parameters = ", ".join(p.arg for p in (*function.args.args, *function.args.kwonlyargs))
    body = "\n".join(map(ast.unparse, function.body))
    text = f"def {function.name}({parameters}):\n{textwrap.indent(body, ' ')}"
    for name in _globals(symtable.symtable(text, "", "exec").get_children()[0]):
        nodes = (n for n in nodes_in(function) if isinstance(n, ast.Name) and n.id == name)
        plain = isinstance(tree, ast.Module) and is_lasting(name, tree)
        if plain and name not in facts.names and all(isinstance(facts.value(n), Static) for n in nodes):
            continue
        known = facts.names.get(name, "").partition(".")[0] in ("numpy", "math", "random")
        if name in own or not (known or (name not in facts.names and hasattr(builtins, name))):
            return name
    return None


def _globals(table: symtable.SymbolTable) -> Iterator[str]:
    """The names that code reads of its module, or of the builtins."""
    for symbol in table.get_symbols():
        if symbol.is_referenced() and symbol.is_global():
            yield symbol.get_name()
    for inner in table.get_children():
        yield from _globals(inner)


class _Body:
    """Which parts of a function do no more than compute."""

    def __init__(self, facts: FunctionFacts, function: ast.FunctionDef, made: MadeNames) -> None:
        self._facts, self._function, self._made = facts, function, made
        self._defined = {n.name for n in nodes_in(function) if isinstance(n, ast.FunctionDef)} - {function.name}
        self._called = {n.func for n in nodes_in(function) if isinstance(n, ast.Call)}

    def computes(self, node: ast.AST) -> bool:
        """Does one node change nothing but what was made in the function, the nodes in it aside?"""
        match node:
            case ast.FunctionDef(decorator_list=[_, *_]):
                return False
            case ast.Subscript(ctx=ast.Store()):
                return self._made.may_be_stored_to(node)
            case ast.AugAssign(target=target):
                return self._made.may_be_added_to(target)
            case ast.Attribute(ctx=ast.Load()):
                return self._is_read(node)
            case ast.Attribute():
                return False
            case ast.Name(ctx=ast.Load(), id=name):
                return name not in self._facts.names or self._is_base(node) or self._is_read(node)
            case ast.Compare(ops=ops, comparators=others):
                asks = [o for op, o in zip(ops, others, strict=True) if isinstance(op, (ast.Is, ast.IsNot))]
                return all(isinstance(o, ast.Constant) and o.value is None for o in asks)
            case ast.Call():
                return self._calls(node)
            case ast.With(items=items):
                return all(item.optional_vars is None and isinstance(item.context_expr, ast.Call) for item in items)
            case ast.Constant(value=str() as text):
                return text not in ("object", "O")
        return isinstance(node, _STATEMENTS) if isinstance(node, ast.stmt) else not isinstance(node, _MORE)

    def _is_base(self, node: ast.expr) -> bool:
        """Is a name only read for an attribute, which is asked about itself, or called?"""
        return isinstance(self._facts.parent(node), ast.Attribute) or node in self._called

    def _is_read(self, node: ast.Attribute | ast.Name) -> bool:
        """Is what is read of a module or of a value the same whenever the function is called?"""
        if node in self._called:
            return True
        folder, _, last = (qualified(self._facts, node) or "").rpartition(".")
        if folder.partition(".")[0] in ("numpy", "math", "random") and not folder.startswith("numpy.ndarray"):
            return last in _CONSTANTS or isinstance(self._facts.parent(node), ast.Attribute)
        return isinstance(node, ast.Attribute) and node.attr in _SAME

    def _calls(self, call: ast.Call) -> bool:
        """Does a call compute, and change what was made in the function at most?"""
        function, given, keywords = call.func, call.args, {k.arg: k.value for k in call.keywords}
        if any(k in ("out", "where", None) for k in keywords):
            return False
        name = qualified(self._facts, function) or ""
        folder, _, last = name.rpartition(".")
        package = folder.partition(".")[0]
        if package in ("math", "random") or (package == "numpy" and folder != "numpy.ndarray"):
            into = last in _INTO and not (given and self._made.is_whole(given[0]))
            if into or last in _STATE or (folder.count(".") > 1 or folder.startswith("numpy.lib")):
                return False
            if folder.startswith("numpy.") and folder not in ("numpy.random", "numpy.linalg") and last != "at":
                return False  # a method of a function of NumPy
            limit = len(given) if name.startswith((*_DRAWS, "math.")) else _READ.get(last, 1)
            return all(isinstance(a, ast.Constant) for a in given[limit:])
        if isinstance(function, ast.Name):
            if function.id in self._defined:
                return True
            by = [*given[:1]] if function.id in ("map", "filter") else []
            by += [value for key, value in keywords.items() if key == "key"]
            known = function.id in _BUILTINS and name == f"builtins.{function.id}"
            return known and all(self._is_function(f) for f in by)
        if not isinstance(function, ast.Attribute):
            return False
        if function.attr in _CHANGES:
            return isinstance(function.value, ast.Name) and self._made.is_new(function.value)
        limit = _METHODS.get(function.attr, -1)
        return limit >= 0 and all(isinstance(a, ast.Constant) for a in given[limit:])

    def _is_function(self, node: ast.expr) -> bool:
        """Is a function that another one calls written here, or one of Python's that computes?"""
        if isinstance(node, ast.Lambda) or (constant(node) is None and isinstance(node, ast.Constant)):
            return True
        return isinstance(node, ast.Name) and (
            node.id in self._defined or (node.id in _BUILTINS and qualified(self._facts, node) == f"builtins.{node.id}")
        )

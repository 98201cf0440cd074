"""Make a value once, when the module is imported, instead of in each call.

Before:
    def f(x):
        return x + importlib.import_module("math").pi

After:
    pi = importlib.import_module("math").pi


    def f(x):
        return x + pi

Legal when:
    the expression, or the class, reads no local name, and is not about time, chance, threads or output.

Differs in:
    it is made once, at import: a later change of what it depends on is not seen, and an exception comes at import.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.span import Span
from graphmend.transforms.bindings import fresh, locals_of, reads
from graphmend.transforms.code import Code
from graphmend.transforms.edits import swap
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.names import qualified
from graphmend.transforms.offer import offer, refuse
from graphmend.transforms.positions import begins_line, first_position, replaceable

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "hoist"
#: modules whose functions give the same for the same arguments in one process
_CONSTANT = frozenset(
    [
        "importlib",
        "functools",
        "platform",
        "inspect",
        "dataclasses",
        "typing",
        "hashlib",
        "zlib",
        "decimal",
        "fractions",
        "re",
        "json",
        "struct",
        "math",
        "operator",
        "string",
        "textwrap",
        "types",
        "base64",
        "binascii",
        "sysconfig",
        "bisect",
        "heapq",
        "collections",
        "itertools",
    ]
)
_ALONE = frozenset({"os.cpu_count", "os.path.exists", "os.path.isfile", "os.path.isdir", "os.path.join", "os.getpid"})
_BUILTINS = frozenset(
    [
        "sorted",
        "len",
        "min",
        "max",
        "sum",
        "abs",
        "tuple",
        "list",
        "int",
        "float",
        "str",
        "round",
        "range",
        "isinstance",
        "getattr",
        "hasattr",
    ]
)
_ONCE = "it is made once, when the module is imported"


def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    if isinstance(facts.statement, ast.ClassDef):
        return _class(facts, facts.statement)
    node = facts.node
    if not isinstance(node, ast.Call) or isinstance(facts.parent(node), (ast.Expr, ast.withitem)):
        return None
    name = qualified(facts, node.func)
    if name is None or not _constant(facts, node):
        return None
    if free := _local(facts, node):
        return refuse(NAME, f"`{ast.unparse(node)}` reads `{free}`, which each call has its own of")
    top = _top(facts)
    if top is None or not begins_line(facts.source, top):
        return refuse(NAME, "there is no module-level line to move it to")
    largest = _largest(facts, node)
    wanted = largest.attr if isinstance(largest, ast.Attribute) else name.rpartition(".")[2]
    bound = fresh(facts, f"_{wanted.strip('_')}")

    def make() -> list[TextEdit]:
        text = Code(facts.source).line(largest)
        return [above(facts, top, f"{bound} = {text}"), swap(facts.source, largest, bound)]

    return offer(NAME, "make the value once, at import", facts, make, [_ONCE])


def once(facts: FunctionFacts, node: ast.Call) -> bool:
    """Is a call one whose result is the same object each time, and can it stand at the top of the module?"""
    top = _top(facts)
    if qualified(facts, node.func) != "logging.getLogger" or _local(facts, node) is not None:
        return False
    return top is not None and begins_line(facts.source, top)


def bound_once(facts: FunctionFacts, node: ast.Call, wanted: str) -> tuple[str, list[TextEdit]]:
    """A name for such a call, and the edit that binds it above the function."""
    top = _top(facts)
    assert top is not None
    name = fresh(facts, f"_{wanted}")
    return name, [above(facts, top, f"{name} = {Code(facts.source).line(node)}")]


def _class(facts: FunctionFacts, node: ast.ClassDef) -> Fix | Refusal:
    free = sorted((reads(node) & locals_of(facts.function)) - {node.name})
    if free:
        return refuse(NAME, f"the class reads `{free[0]}`, which each call has its own of")
    top = _top(facts)
    tree = facts.source.tree
    assert tree is not None
    if node.name in facts.names or any(
        isinstance(n, ast.Name) and n.id == node.name for s in tree.body if s is not top for n in ast.walk(s)
    ):
        return refuse(NAME, f"the module has a `{node.name}` of its own")
    block = facts.body_of(node)
    if top is None or not begins_line(facts.source, top) or len(block) == 1 or not replaceable(facts, [node]):
        return refuse(NAME, "the class cannot be moved out of its block")

    def make() -> list[TextEdit]:
        from graphmend.transforms.splice import Place

        place = Place(facts.source, top, top)
        text = place.generate(place.parse([node]))
        line = first_position(facts.source, node)[0]
        end = node.end_lineno or node.lineno
        return [above(facts, top, text), TextEdit(Span(line, 0, end + 1, 0), "")]

    return offer(NAME, "make the class once, at import", facts, make, [_ONCE])


def _top(facts: FunctionFacts) -> ast.stmt | None:
    """The module-level statement around the function."""
    tree = facts.source.tree
    assert tree is not None
    return next((s for s in tree.body if any(n is facts.function for n in ast.walk(s))), None)


def above(facts: FunctionFacts, top: ast.stmt, text: str) -> TextEdit:
    """New module-level code above a definition, the two blank lines kept."""
    newline = "\r\n" if "\r\n" in facts.source.text else "\n"
    line = first_position(facts.source, top)[0]
    return TextEdit(Span(line, 0, line, 0), f"{text}{newline}{newline}{newline}")


def _largest(facts: FunctionFacts, node: ast.expr) -> ast.expr:
    """The largest expression around `node` that reads no local name either."""
    largest = node
    child: ast.AST = node
    for above in facts.ancestors(node):
        if isinstance(above, ast.expr):
            if (
                _local(facts, above)
                or not _constant(facts, above)
                or isinstance(above, (ast.Lambda, ast.GeneratorExp, ast.ListComp))
            ):
                break
            if not (
                isinstance(above, ast.Attribute) and child is above.value and isinstance(facts.parent(above), ast.Call)
            ):
                largest = above
        elif not isinstance(above, ast.keyword):
            break
        child = above
    return largest


def _constant(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is every call in an expression one that gives the same each time?"""
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            name = qualified(facts, call.func) or ""
            root, _, last = name.partition(".")
            if name in _ALONE or (root == "builtins" and last in _BUILTINS):
                continue
            if root not in _CONSTANT or name in ("inspect.stack", "inspect.currentframe"):
                return False
    return True


def _local(facts: FunctionFacts, node: ast.expr) -> str | None:
    """A name that an expression reads and that is local to the function."""
    own = {a.arg for n in ast.walk(node) if isinstance(n, ast.Lambda) for a in n.args.args}
    return next(iter(sorted((reads(node) & locals_of(facts.function)) - own)), None)

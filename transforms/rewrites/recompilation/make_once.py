"""Make a function, class or other object once, at the top of the file, instead of in each call.

Before:
    def run(fn, x):
        return torch.compile(fn, backend=lambda graph, inputs: graph.forward)(x)

After:
    def _backend(graph, inputs):
        return graph.forward


    def run(fn, x):
        return torch.compile(fn, backend=_backend)(x)

Legal when:
    it is a backend, or a class of which compiled code is given an object, that is made anew: by a lambda, a nested
    function or class, `functools.partial`, `collections.namedtuple`, `aot_autograd`, or a class of the file whose
    methods set nothing. It needs no name of the functions and classes around it; what is evaluated when it is made are
    constants, and imports and definitions that stand above. By its name it is only given to the compiler or called, and
    its own code sets nothing on it.

Differs in:
    whatever has a name of its own is one object, by another qualified name, where each call made its own: who looks at
    what keeps it, or at the classes of objects, sees that.
"""

from __future__ import annotations

import ast
import builtins
import re
import symtable
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from graphmend.analysis.facts.function_facts import parents_in
from graphmend.analysis.syntax.span import Span
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.liveness import fresh, locals_of
from graphmend.transforms.code.module_level import changing_global, insert_above, names_bound
from graphmend.transforms.code.positions import begins_line, first_position
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.driver.guards.variation import Variation
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "make_once"
_Functions = (ast.FunctionDef, ast.AsyncFunctionDef)
_PRIVATE = re.compile(r"__\w*?[^_]_?$")
_Definitions = ast.FunctionDef | ast.ClassDef
_ONE = Difference("state", "`{}` is one object, by another qualified name, where each call made its own")
#: calls that give the same thing for the same arguments, which nobody changes
_MAKERS = frozenset({
    "functools.partial", "collections.namedtuple", "torch._dynamo.backends.common.aot_autograd",
})  # fmt: skip
_LIBRARIES = ("torch.", "builtins.", "abc.", "enum.", "typing.", "collections.")
_DECORATORS = frozenset({
    "builtins.staticmethod", "builtins.classmethod", "builtins.property", "dataclasses.dataclass", "torch.no_grad",
})  # fmt: skip


class _Bound(Exception):
    """What is made needs something that stands around it, or may be told apart."""


@asks("names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    variation, tree = facts.variation, facts.source.tree
    if variation is None or tree is None:
        return None
    parents = parents_in(tree)
    node = _backend(variation, parents) if variation.kind == "backend" else _class(variation, parents)
    if node is None:
        return None
    around = [n for n in _above(parents, node) if isinstance(n, _Functions)]
    top = next((s for s in tree.body if s is (around[-1] if around else None) or _holds(s, node)), None)
    if top is None or top is node or not begins_line(facts.source, top):
        return refuse(NAME, "it stands at no place above which it could be made")
    try:
        _check_class_around(node, parents)
        if isinstance(node, ast.Assign):
            _check_uses(node, ast.unparse(node.targets[0]), parents)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            _check_uses(node, node.name, parents)
        edits = _moved(facts, node, around, top, parents)
    except _Bound as error:
        return refuse(NAME, str(error))
    name = node.name if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else ""
    if isinstance(node, ast.Assign):
        name = ast.unparse(node.targets[0])
    differs = [Difference(_ONE.kind, _ONE.says.format(name))] if name else []
    return offer(NAME, "make it once, at the top of the file", facts, lambda: edits, differs)


# What is made anew


def _backend(variation: Variation, parents: dict[ast.AST, ast.AST]) -> ast.AST | None:
    """What makes the backend of a site: an expression, or the function of that name."""
    site = variation.site.node
    given = next((k.value for k in site.keywords if k.arg == "backend"), None) if isinstance(site, ast.Call) else None
    if given is None or given not in parents:
        return None
    if isinstance(given, (ast.Lambda, ast.Call)):
        return given
    return _definition(given, given.id, parents) if isinstance(given, ast.Name) else None


def _class(variation: Variation, parents: dict[ast.AST, ast.AST]) -> ast.AST | None:
    """The class that is made anew, or the call that makes it."""
    before = variation.changes[0][0]
    info = getattr(before[1], "info", None) if isinstance(before, tuple) and len(before) == 2 else None
    if info is not None:
        node: ast.AST = info.node
        return node if node in parents else None
    target = variation.target.node if variation.target is not None else None
    if isinstance(before, tuple) and before[0] == "class" and target in parents:
        return _definition(target, variation.subject, parents)
    return None


def _definition(node: ast.AST, name: str, parents: dict[ast.AST, ast.AST]) -> ast.AST | None:
    """The statement that binds a name in the functions around a node, the only one that does."""
    for outer in _above(parents, node):
        if not isinstance(outer, _Functions):
            continue
        found = [n for n in nodes_in(outer) if n is not outer and _binds(n, name)]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _binds(node: ast.AST, name: str) -> bool:
    match node:
        case ast.FunctionDef(name=bound) | ast.ClassDef(name=bound) | ast.arg(arg=bound):
            return bound == name
        case ast.Assign(targets=[ast.Name(id=bound)]):
            return bound == name
        case ast.AugAssign(target=ast.Name(id=bound)) | ast.AnnAssign(target=ast.Name(id=bound)):
            return bound == name
    return False


# Whether it may stand at the top


def _moved(
    facts: FunctionFacts, node: ast.AST, around: Sequence[ast.AST], top: ast.stmt, parents: dict[ast.AST, ast.AST]
) -> list[TextEdit]:
    if isinstance(node, ast.Assign):
        _check_call(facts, node.value, top)
        _check_names(facts, node, around)
        text = f"{ast.unparse(node.targets[0])} = {Code(facts.source).line(node.value)}"
        return [insert_above(facts, top, text), _removed(facts, node, ast.unparse(node.targets[0]), parents)]
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        _check_definition(facts, node, top)
        _check_names(facts, node, around)
        return [insert_above(facts, top, _text(facts, node)), _removed(facts, node, node.name, parents)]
    if isinstance(node, ast.Lambda):
        _check_evaluated(facts, node, top)
        _check_names(facts, node, around)
        name = fresh(facts, "_backend")
        body = Code(facts.source).line(node.body)
        made = f"def {name}({ast.unparse(node.args)}):\n    return {body}"
    elif isinstance(node, ast.Call):
        _check_call(facts, node, top)
        _check_names(facts, node, around)
        name = fresh(facts, "_backend")
        made = f"{name} = {Code(facts.source).line(node)}"
    else:
        raise _Bound("it is no function, class or call")
    return [insert_above(facts, top, made), replace_expression(facts.source, node, name)]


def _check_names(facts: FunctionFacts, node: ast.AST, around: Sequence[ast.AST]) -> None:
    """Nothing that it needs, now or when it is called, is a name of the functions around it."""
    try:
        free = set(_free(symtable.symtable(_text(facts, node), "moved", "exec")))
    except SyntaxError as error:  # `nonlocal`
        raise _Bound(f"it cannot stand alone: {error.msg}") from None
    for outer in around:
        assert isinstance(outer, _Functions)
        own = {getattr(node, "name", ""), *(ast.unparse(t) for t in getattr(node, "targets", ()))}
        for name in sorted(free & (locals_of(outer) - own)):
            raise _Bound(f"it needs `{name}`, which is another one in each call of `{outer.name}`")


def _check_class_around(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> None:
    """Nothing of it means something else outside the class around it: a name that Python makes private, or `super`."""
    if not any(isinstance(n, ast.ClassDef) for n in _above(parents, node)):
        return
    parts: list[ast.AST] = [node]
    if isinstance(node, ast.ClassDef):  # what stands in its body is its own
        parts = [*node.bases, *node.keywords, *node.decorator_list]
    for inner in (n for part in parts for n in nodes_in(part)):
        for name in (getattr(inner, field, None) for field in ("id", "attr", "arg", "name")):
            if isinstance(name, str) and (_PRIVATE.match(name) or name in ("super", "__class__")):
                raise _Bound(f"`{name}` means something in the class around it")


def _check_uses(node: _Definitions | ast.Assign, name: str, parents: dict[ast.AST, ast.AST]) -> None:
    """It is only given to the compiler, or called: nobody keeps it, looks at it or puts something into it by name."""
    scope = next(n for n in _above(parents, node) if isinstance(n, (*_Functions, ast.Module)))
    for read in nodes_in(scope):
        if not isinstance(read, ast.Name) or read.id != name or isinstance(read.ctx, ast.Store):
            continue
        above = parents[read]
        given = isinstance(above, ast.keyword) and above.arg == "backend"
        made = isinstance(node, ast.ClassDef) and isinstance(above, ast.Call) and above.func is read
        named = isinstance(node, ast.Assign) and isinstance(above, ast.Call) and above.func is read
        looked = isinstance(node, ast.ClassDef) and isinstance(above, ast.Attribute) and isinstance(above.ctx, ast.Load)
        if not (given or made or named or looked):
            raise _Bound(f"`{ast.unparse(above)}` takes `{name}` for itself")


def _free(table: symtable.SymbolTable) -> Iterator[str]:
    """The names that code takes from around itself."""
    for symbol in table.get_symbols():
        if symbol.is_global() or (table.get_type() == "module" and symbol.is_referenced()):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _free(child)


def _check_evaluated(facts: FunctionFacts, function: ast.FunctionDef | ast.Lambda, top: ast.stmt) -> None:
    """What is evaluated where a function is defined: defaults, annotations."""
    given = function.args
    for default in (*given.defaults, *given.kw_defaults):
        if default is not None and not _is_plain(default):
            raise _Bound("a default of it is made anew, too")
    arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    annotations = [a.annotation for a in arguments if a is not None] + [getattr(function, "returns", None)]
    for annotation in annotations:
        if annotation is not None:
            _check_lasting(facts, annotation, top)


def _check_definition(facts: FunctionFacts, node: _Definitions, top: ast.stmt) -> None:
    tree = facts.source.tree
    assert tree is not None
    if node.name in names_bound(tree.body) or hasattr(builtins, node.name):
        raise _Bound(f"`{node.name}` stands for something else at the top of the file")
    for decorator in [d for n in nodes_in(node) for d in getattr(n, "decorator_list", ())]:
        function = decorator.func if isinstance(decorator, ast.Call) else decorator
        if qualified(facts, function) not in _DECORATORS:
            raise _Bound(f"nothing is known of the decorator `{ast.unparse(decorator)}`")
        _check_lasting(facts, function, top)
    own = {s.args.args[0].arg for s in node.body if isinstance(s, ast.FunctionDef) and _is_method(s)}
    for inner in nodes_in(node):
        match inner:
            case ast.Attribute(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()) if name in own:
                pass
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Name(id="setattr" | "delattr" | "vars"):
                raise _Bound(f"`{ast.unparse(inner)}` may be an attribute of `{node.name}` that is set")
    if isinstance(node, ast.FunctionDef):
        _check_evaluated(facts, node, top)
        return
    if node.keywords:
        raise _Bound(f"`{ast.unparse(node.keywords[0])}` may do something where a class is made")
    for base in node.bases:
        _check_lasting(facts, base, top)
        _check_base(facts, base)
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef):
            _check_evaluated(facts, statement, top)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            if statement.value is not None and not _is_plain(statement.value):
                raise _Bound(f"`{ast.unparse(statement)}` is evaluated anew each time")
            if isinstance(statement, ast.AnnAssign):
                _check_lasting(facts, statement.annotation, top)
        elif not (isinstance(statement, ast.Pass) or _is_docstring(statement)):
            raise _Bound(f"`{ast.unparse(statement).splitlines()[0]}` is executed each time")


def _is_method(function: ast.FunctionDef) -> bool:
    """Is the first parameter of a function in a class an object of it?"""
    return bool(function.args.args) and not any("method" in ast.unparse(d) for d in function.decorator_list)


def _check_base(facts: FunctionFacts, base: ast.expr) -> None:
    """Nothing happens where a class with this base is made: it is torch's or Python's, or one of the file that is as
    plain, and so are its own bases.
    """
    tree = facts.source.tree
    assert tree is not None
    found = [s for s in tree.body if isinstance(s, ast.ClassDef) and s.name == ast.unparse(base)]
    if not found and (qualified(facts, base) or "").startswith(_LIBRARIES):
        return
    for cls in found:
        hooks = [s for s in cls.body if isinstance(s, ast.FunctionDef) and s.name == "__init_subclass__"]
        if not (hooks or cls.keywords or cls.decorator_list):
            for further in cls.bases:
                _check_base(facts, further)
            return
    raise _Bound(f"`{ast.unparse(base)}` may do something where a class is made")


def _check_call(facts: FunctionFacts, node: ast.expr, top: ast.stmt) -> None:
    """A call makes something that nobody changes, of things that stay what they are."""
    if not isinstance(node, ast.Call):
        raise _Bound("it is made by no call")
    if not (qualified(facts, node.func) in _MAKERS or _sets_nothing(facts, node)):
        raise _Bound(f"what `{ast.unparse(node.func)}` makes may be changed")
    given = [*node.args, *(k.value for k in node.keywords)]
    for one in [node.func, *given]:
        if any(isinstance(n, (ast.Starred, ast.Lambda)) for n in nodes_in(one)):
            raise _Bound(f"nothing is known of `{ast.unparse(one)}`")
        if one is not node.func and not _is_plain(one) and not isinstance(one, (ast.Name, ast.Attribute)):
            raise _Bound(f"`{ast.unparse(one)}` is made anew, too")
        _check_lasting(facts, one, top)


def _sets_nothing(facts: FunctionFacts, node: ast.Call) -> bool:
    """Is it a class of the file, without bases, whose methods keep nothing?"""
    tree = facts.source.tree
    assert tree is not None
    if node.args or node.keywords or not isinstance(node.func, ast.Name):
        return False
    cls = next((s for s in tree.body if isinstance(s, ast.ClassDef) and s.name == ast.unparse(node.func)), None)
    if cls is None or cls.bases or cls.keywords or cls.decorator_list:
        return False
    if not all(isinstance(s, ast.FunctionDef) or _is_docstring(s) for s in cls.body):
        return False
    for method in cls.body:
        receiver = method.args.args[0].arg if isinstance(method, ast.FunctionDef) and method.args.args else ""
        uses = [n for n in nodes_in(method) if isinstance(n, ast.Name) and n.id == receiver]
        if uses or (isinstance(method, ast.FunctionDef) and (method.decorator_list or method.name == "__init__")):
            return False
    return True


def _check_lasting(facts: FunctionFacts, node: ast.expr, top: ast.stmt) -> None:
    if (name := changing_global(facts, top, node)) is not None:
        raise _Bound(f"`{name}` may not stand for the same above")


def _is_plain(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple):
        return all(_is_plain(one) for one in node.elts)
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and _is_plain(node.operand))


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


# Text


def _text(facts: FunctionFacts, node: ast.AST) -> str:
    """The text of a definition, or of an expression, flush left."""
    if isinstance(node, ast.stmt):
        first, last = first_position(facts.source, node)[0], node.end_lineno or 0
        lines = facts.source.text.splitlines()[first - 1 : last]
        return textwrap.dedent("\n".join(lines))
    assert isinstance(node, ast.expr)
    return Code(facts.source).line(node)


def _removed(facts: FunctionFacts, node: ast.stmt, name: str, parents: dict[ast.AST, ast.AST]) -> TextEdit:
    """Take a statement away, and the empty lines behind it."""
    others = getattr(parents[node], "body", [])
    if node not in others or len(others) < 2 or not begins_line(facts.source, node):
        raise _Bound(f"`{name}` cannot be taken out of its place")
    first, last = first_position(facts.source, node)[0], node.end_lineno or 0
    lines = facts.source.text.splitlines()
    if "\\" in lines[last - 1][-1:] or ";" in lines[last - 1][node.end_col_offset or 0 :]:
        raise _Bound(f"`{name}` shares its line with other code")
    while last < len(lines) and not lines[last].strip():
        last += 1
    return TextEdit(Span(first, 0, last + 1, 0), "")


def _above(parents: dict[ast.AST, ast.AST], node: ast.AST) -> Iterator[ast.AST]:
    while node in parents:
        node = parents[node]
        yield node


def _holds(statement: ast.stmt, node: ast.AST) -> bool:
    return any(inner is node for inner in nodes_in(statement))

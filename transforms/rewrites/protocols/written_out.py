"""Write out what Python's own library does with names and methods.

Before:
    with contextlib.closing(Reader(x)) as reader:
        y = Norms().square(reader.read()) * globals()["SCALE"]

After:
    reader = Reader(x)
    try:
        y = Norms().norm(reader.read(), p=2) * SCALE
    finally:
        reader.close()

Legal when:
    `functools.partialmethod` is given a method of its class and constants; the name that `globals()` is asked for is
    one of the module; what is closed is made by the `with` itself.

Differs in:
    nothing for names and `closing`. A method that `types.MethodType` binds becomes a `functools.partial`, which is of
    another class; the method that a partial one calls is taken to be the one in sight.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.program.definitions import ClassInfo
from graphmend.analysis.program.entities import Instance
from graphmend.analysis.resolution.classes import mro
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code, bracketed
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import fresh, locals_of, parameters, writes
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import called, constant
from graphmend.transforms.code.text_edits import HOLE, replace_expression, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.objects.classes import subclasses
from graphmend.transforms.questions import take_for_granted
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "written_out"
_TYPE = Difference("type", "what is bound is a functools.partial instead of a method, without its attributes")


@asks("names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    return _closed(facts) or _partial(facts) or _global(facts) or _bound(facts)


def _partial(facts: FunctionFacts) -> Fix | Refusal | None:
    """`value.method(...)` of a `functools.partialmethod`."""
    around = (facts.node, facts.parent(facts.node))
    call = next((n for n in around if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)), None)
    if call is None or not isinstance(call.func, ast.Attribute):
        return None
    value = facts.value(call.func.value)
    if not isinstance(value, Instance):
        return None
    made = next((c.names[call.func.attr] for c in mro(value.info) if call.func.attr in c.names), None)
    if not isinstance(made, ast.Call) or ast.unparse(made.func).rpartition(".")[2] != "partialmethod" or not made.args:
        return None
    of, *first = made.args
    if not isinstance(of, ast.Name) or not _is_plain_method(value.info, of.id):
        return refuse(NAME, "what the partial method calls is no plain method of the class, or one that is overridden")
    fixed = [*first, *(k.value for k in made.keywords)]
    if not all(isinstance(a, ast.Constant) for a in fixed) or any(
        k.arg is None for k in (*made.keywords, *call.keywords)
    ):
        return refuse(NAME, "what the partial method is given is no constant, or spread out")
    code = Code(facts.source)
    own = {k.arg for k in call.keywords}
    parts = [ast.unparse(a) for a in first]
    parts += [code.argument(a) for a in call.args]
    parts += [f"{k.arg}={ast.unparse(k.value)}" for k in made.keywords if k.arg not in own]
    parts += [f"{k.arg}={code.argument(k.value)}" for k in call.keywords]
    text = f"{bracketed(code.text(call.func.value))}.{of.id}({', '.join(parts)})"
    if not value.made_inside:
        take_for_granted(f"`{ast.unparse(call.func.value)}` is taken to be of class `{value.info.name}`")
    return offer(NAME, "call the method itself", facts, lambda: [replace_expression(facts.source, call, text)])


def _is_plain_method(info: ClassInfo, name: str) -> bool:
    method = next((cls.methods[name] for cls in mro(info) if name in cls.methods), None)
    if method is None or method.decorators:
        return False
    others = (cls for cls in (*mro(info), *subclasses(info)) if cls is not method.owner)
    return not any(name in cls.methods or name in cls.names or name in cls.assigned for cls in others)


def _global(facts: FunctionFacts) -> Fix | Refusal | None:
    """`globals()["name"]`."""
    node = facts.node
    if not isinstance(node, ast.Call) or called(facts, node, "builtins.globals") is None:
        return None
    whole = facts.parent(node)
    name = constant(whole.slice) if isinstance(whole, ast.Subscript) and whole.value is node else None
    if not isinstance(whole, ast.Subscript) or not isinstance(whole.ctx, ast.Load) or not isinstance(name, str):
        return refuse(NAME, "only a name that is written out has another form")
    if name in {*locals_of(facts.function), *parameters(facts.function)}:
        return refuse(NAME, f"`{name}` is a name of the function, too")
    if not _is_of_module(facts, name):
        return refuse(NAME, f"`{name}` may not be there, or not any more")
    return offer(NAME, "name it", facts, lambda: [replace_expression(facts.source, whole, name)])


def _is_of_module(facts: FunctionFacts, name: str) -> bool:
    """Does a statement of the module's top level bind a name on every way, and none take it away?"""
    tree = facts.source.tree
    if tree is None:
        return False
    defined = any(isinstance(s, (ast.FunctionDef, ast.ClassDef)) and s.name == name for s in tree.body)
    bound = any(isinstance(s, (ast.Assign, ast.Import, ast.ImportFrom)) and name in writes(s) for s in tree.body)
    gone = any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Del) for n in nodes_in(tree))
    return (defined or bound) and not gone


def _bound(facts: FunctionFacts) -> Fix | Refusal | None:
    """`types.MethodType(function, value)`."""
    node = facts.node
    call = called(facts, node, "types.MethodType") if isinstance(node, ast.Call) else None
    if call is None or len(call.args) != 2 or call.keywords:
        return None
    imports, code = Imports(facts), Code(facts.source)
    text = f"{imports.name('functools.partial')}({', '.join(code.argument(a) for a in call.args)})"

    def make() -> list[TextEdit]:
        return [*imports.edits(), replace_expression(facts.source, call, text)]

    return offer(NAME, "bind the value as an argument", facts, make, [_TYPE])


def _closed(facts: FunctionFacts) -> Fix | Refusal | None:
    """`with contextlib.closing(value) as name:`."""
    statement = facts.statement
    if not isinstance(statement, ast.With) or len(statement.items) != 1:
        return None
    (item,) = statement.items
    call = called(facts, item.context_expr, "contextlib.closing")
    if call is None or len(call.args) != 1 or call.keywords:
        return None
    target = item.optional_vars
    if (target is not None and not isinstance(target, ast.Name)) or not replaceable(facts, [statement]):
        return refuse(NAME, "what is closed is bound to no plain name, or the statement shares its line")
    name = target.id if isinstance(target, ast.Name) else fresh(facts, "closed")
    if isinstance(target, ast.Name) and any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, (ast.Store, ast.Del))
        for s in statement.body
        for n in nodes_in(s)
    ):
        return refuse(NAME, f"`{name}` is bound anew before it is closed")
    lines = [f"{name} = {Code(facts.source).line(call.args[0])}", "try:", f"    {HOLE.format(0)}"]
    text = "\n".join([*lines, "finally:", f"    {name}.close()"]) + "\n"
    return offer(
        NAME,
        "close it behind the block",
        facts,
        lambda: [replace_statements(facts.source, [statement], text, statement.body)],
    )

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
    `functools.partialmethod` is given a method of its class, above it, and constants, and the object is made in sight;
    the name that `globals()` is asked for is one of the module, bound above the function, once, and looked up so here
    alone; what is closed has a plain name, which keeps it, and in no generator.

Differs in:
    nothing.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code, bracketed
from graphmend.transforms.code.liveness import locals_of, parameters, writes
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import called, constant
from graphmend.transforms.code.text_edits import HOLE, replace_expression, replace_statements
from graphmend.transforms.fix import Fix, Refusal
from graphmend.transforms.legality.names.replaced import is_lasting
from graphmend.transforms.legality.objects.exact import binds, exact_class, method_named
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "written_out"
_SCOPES = (ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp, ast.ClassDef)


@asks(any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    return _closed(facts) or _partial(facts) or _global(facts)


def _partial(facts: FunctionFacts) -> Fix | Refusal | None:
    """`value.method(...)` of a `functools.partialmethod`."""
    around = (facts.node, facts.parent(facts.node))
    call = next((n for n in around if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)), None)
    if call is None or not isinstance(call.func, ast.Attribute):
        return None
    info = exact_class(facts, call.func.value)
    found = binds(info, call.func.attr) if info is not None else None
    match found[1] if found is not None else None:
        case ast.Assign(targets=[ast.Name()], value=ast.Call(args=[ast.Name(id=name), *first]) as made):
            pass
        case _:
            return None
    assert info is not None
    assert found is not None
    if info.module.qualified(made.func) != "functools.partialmethod":
        return None
    method = method_named(info, name)
    if method is None or method.node not in found[0].node.body or method.node.lineno > made.lineno:
        return refuse(NAME, f"`{name}` is not known to be the one method in sight that the partial method calls")
    if name.startswith("__") or method.node.args.kwarg is not None:
        return refuse(NAME, f"`{name}` has another name outside of its class, or takes any keywords")
    fixed, spread = [*first, *(k.value for k in made.keywords)], [*made.keywords, *call.keywords]
    if not all(isinstance(a, ast.Constant) for a in fixed) or any(k.arg is None for k in spread):
        return refuse(NAME, "what the partial method is given is no constant, or spread out")
    code = Code(facts.source)
    own = {k.arg for k in call.keywords}
    parts = [ast.unparse(a) for a in first]
    parts += [code.argument(a) for a in call.args]
    parts += [f"{k.arg}={ast.unparse(k.value)}" for k in made.keywords if k.arg not in own]
    parts += [f"{k.arg}={code.argument(k.value)}" for k in call.keywords]
    text = f"{bracketed(code.text(call.func.value))}.{name}({', '.join(parts)})"
    return offer(NAME, "call the method itself", facts, lambda: [replace_expression(facts.source, call, text)])


def _global(facts: FunctionFacts) -> Fix | Refusal | None:
    """`globals()["name"]`."""
    node, tree = facts.node, facts.source.tree
    if not isinstance(node, ast.Call) or called(facts, node, "builtins.globals") is None or tree is None:
        return None
    whole = facts.parent(node)
    name = constant(whole.slice) if isinstance(whole, ast.Subscript) and whole.value is node else None
    if not isinstance(whole, ast.Subscript) or not isinstance(whole.ctx, ast.Load) or not isinstance(name, str):
        return refuse(NAME, "only a name that is written out has another form")
    inside = facts.function not in tree.body or any(isinstance(a, _SCOPES) for a in facts.ancestors(node))
    if inside or name in {*locals_of(facts.function), *parameters(facts.function)}:
        return refuse(NAME, f"`{name}` may be a name of the function, too")
    if sum(isinstance(n, ast.Name) and n.id in ("globals", "vars", "exec", "eval") for n in nodes_in(tree)) > 1:
        return refuse(NAME, "names of the module are looked up, or written, elsewhere, too")
    if not is_lasting(name, tree) or not any(_binds(s, name) for s in tree.body[: tree.body.index(facts.function)]):
        return refuse(NAME, f"`{name}` may not be there yet, or not any more")
    return offer(NAME, "name it", facts, lambda: [replace_expression(facts.source, whole, name)])


def _binds(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return statement.name == name
    return isinstance(statement, (ast.Assign, ast.Import, ast.ImportFrom)) and name in writes(statement)


def _closed(facts: FunctionFacts) -> Fix | Refusal | None:
    """`with contextlib.closing(value) as name:`."""
    statement = facts.statement
    if not isinstance(statement, ast.With) or len(statement.items) != 1:
        return None
    (item,) = statement.items
    call = called(facts, item.context_expr, "contextlib.closing")
    if call is None:
        return None
    target, given = item.optional_vars, call.args[0] if len(call.args) == 1 else None
    if not isinstance(target, ast.Name) or given is None or isinstance(given, ast.Starred) or call.keywords:
        return refuse(NAME, "what is closed is bound to no plain name")
    if not replaceable(facts, [statement]):
        return refuse(NAME, "the statement shares its line with another one")
    if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in nodes_in(facts.function)):
        # measured with torch 2.13: of a generator that is not run to its end, compiled code leaves `finally` out
        return refuse(NAME, "a generator that is left early would not close it while compiled")
    shared = any(isinstance(n, (ast.Global, ast.Nonlocal)) and target.id in n.names for n in nodes_in(facts.function))
    inner = [n for s in statement.body for n in nodes_in(s)]
    if shared or any(target.id in (*writes(n), getattr(n, "name", None), getattr(n, "rest", None)) for n in inner):
        return refuse(NAME, f"`{target.id}` may be bound anew before it is closed")
    lines = [f"{target.id} = {Code(facts.source).line(given)}", "try:", f"    {HOLE.format(0)}"]
    text = "\n".join([*lines, "finally:", f"    {target.id}.close()"]) + "\n"
    return offer(
        NAME,
        "close it behind the block",
        facts,
        lambda: [replace_statements(facts.source, [statement], text, statement.body)],
    )

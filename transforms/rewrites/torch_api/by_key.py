"""Take the greatest by a key with `argmax`, or numbers in order with `argsort`, instead of asking tensors.

Before:
    best = max(range(len(feats)), key=lambda i: scores[i].item())
    chosen = max(ts, key=lambda t: t.norm())
    order = sorted(range(len(feats)), key=lambda i: scores[i].item(), reverse=True)
    longest = max(ts, key=len)

After:
    best = torch.stack([scores[i] for i in range(len(feats))]).argmax()
    chosen = torch.stack(ts).index_select(0, torch.stack([t.norm() for t in ts]).argmax().reshape(1)).squeeze(0)
    order = torch.stack([scores[i] for i in range(len(feats))]).argsort(descending=True, stable=True).unbind()
    longest = sorted(ts, key=len, reverse=True)[0]

Legal when:
    the key is a lambda of one element, which gives a tensor without effects; what is chosen from are the numbers of a
    `range`, where each use of them takes a 0-d tensor, or tensors in a list or tuple of this function, and
    the one chosen is not changed in place. A key that is known while tracing orders whatever it is asked of.

Differs in:
    nothing to choose from raises another exception; a NaN is the greatest and the least. Of tensors, equal shapes and
    dtypes are needed, and the one chosen is a copy.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Container, Static, Tensor, dtype_kind
from graphmend.transforms.code.bindings import name_given, reaching
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports, shadowed
from graphmend.transforms.code.module_level import names_bound
from graphmend.transforms.code.qualified_names import called, constant, is_tensor
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.kept_scalars import written
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.gradients.sides import recorded
from graphmend.transforms.legality.memory import changed_in_place
from graphmend.transforms.legality.outside.identity import identified
from graphmend.transforms.legality.scalar_uses import NeedsPythonNumberError, ScalarUses
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "by_key"
_TITLE = "take the greatest with argmax"
_COPIED = (
    Difference("exception", "the tensors must have equal shapes"),
    Difference("aliasing", "the one chosen is a copy"),
    Difference("strides", "the one chosen is dense memory"),
    Difference("dtype", "if the dtypes of the tensors differ, the result has the promoted one"),
    Difference("overflow", "what a narrower dtype of them would wrap around does not in the promoted one"),
    Difference("zero-gradients", "tensors that are not chosen get zeros for gradients instead of None"),
)


class _Choice(NamedTuple):
    """`max(values, key=lambda name: key)`, or `sorted`."""

    call: ast.Call
    values: ast.expr
    name: str
    key: ast.expr
    function: str
    """What torch calls of the keys."""
    several: bool = False
    """Are they all taken, in order?"""


@asks("effects", "memory", "numbers", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    if (known := _known(facts)) is not None:
        return known
    choice = _choice(facts)
    if choice is None:
        return None
    key = _asked(facts, choice.key)
    if key is None:
        return refuse(NAME, f"`{ast.unparse(choice.key)}` is not known to be a tensor")
    if found := effects(facts, key):
        return refuse(NAME, found[0])
    value = facts.value(key)
    kind = dtype_kind(value.dtype) if isinstance(value, Tensor) else None
    if kind in ("bool", "complex"):
        return refuse(NAME, f"`{ast.unparse(choice.key)}` is a {kind}, of which torch has no greatest")
    code, imports = Code(facts.source), Imports(facts)
    stack = imports.name("torch.stack")
    clause = f"for {choice.name} in {code.text(choice.values)}"
    place = f"{stack}([{code.argument(key)} {clause}]).{choice.function}"
    differences = [Difference("exception", "nothing to choose from raises another exception")]
    if kind is None:
        differences.append(Difference("exception", "keys that are bools raise"))
    if kind != "int":
        says = "NaN sorts as the greatest" if choice.several else "a NaN is the greatest and the least"
        differences.append(Difference("nan", says))
    if not (isinstance(value, Tensor) and value.rank == 0):
        differences.append(Difference("exception", "keys of several elements raise no more"))
    if (counted := _range(facts, choice.values)) is not None:
        return _numbers(facts, choice, counted, place, imports, differences)
    return _tensor(facts, choice, place, imports, differences)


def _range(facts: FunctionFacts, values: ast.expr) -> ast.Call | None:
    """The call of `range` that what is chosen from is, or was bound to."""
    made = reaching(facts, values) if isinstance(values, ast.Name) else values
    return made if isinstance(made, ast.Call) and called(facts, made, "builtins.range") is not None else None


def _known(facts: FunctionFacts) -> Fix | Refusal | None:
    """The first in order by a key that is known while tracing: Dynamo traces `sorted` with one, `max` of tensors
    without (torch 2.13). The first of several that are equal is what `max` takes, as `sorted` keeps their order.
    """
    call = next((n for n in (facts.node, *facts.ancestors(facts.node)) if _takes_one(facts, n)), None)
    tree = facts.source.tree
    if not isinstance(call, ast.Call) or tree is None:
        return None
    if "sorted" in shadowed(facts) | names_bound(tree.body):
        return refuse(NAME, "`sorted` is another function here")
    key, value = call.keywords[0].value, None
    if isinstance(key, ast.Lambda):
        value = facts.value(key.body)
        if not isinstance(value, Static) or effects(facts, key.body):
            return None
    elif not (isinstance(key, ast.Name) and called(facts, ast.Call(key, [], []), "builtins.len")):
        return None
    code, several = Code(facts.source), len(call.args) > 1
    values = f"({', '.join(map(code.argument, call.args))})" if several else code.argument(call.args[0])
    falls = ", reverse=True" if called(facts, call, "builtins.max") else ""
    text = f"sorted({values}, key={code.argument(key)}{falls})[0]"
    of = call.args[0]
    whole = several or (isinstance(of, (ast.List, ast.Tuple)) and any(not isinstance(e, ast.Starred) for e in of.elts))
    differences = [] if whole else [Difference("exception", "nothing to choose from raises another exception")]
    if value is not None and value.type not in ("int", "bool", "str"):  # type: ignore[attr-defined]
        differences.append(Difference("nan", "a NaN among the keys may choose another one"))
    return offer(
        NAME,
        "take the first in order",
        facts,
        lambda: [replace_expression(facts.source, call, text)],
        differences,
    )


def _takes_one(facts: FunctionFacts, node: ast.AST) -> bool:
    """Is this `max(values, key=...)` or `min(one, other, key=...)`?"""
    if not isinstance(node, ast.Call) or not node.args or any(isinstance(a, ast.Starred) for a in node.args):
        return False
    return called(facts, node, "builtins.max", "builtins.min") is not None and [k.arg for k in node.keywords] == ["key"]


def _choice(facts: FunctionFacts) -> _Choice | None:
    for node in (facts.node, *facts.ancestors(facts.node)):
        if not isinstance(node, ast.Call) or len(node.args) != 1:
            continue
        call, options = node, {k.arg: k.value for k in node.keywords}
        key, falls = options.pop("key", None), constant(options.pop("reverse", ast.Constant(False)))
        if options or not isinstance(key, ast.Lambda) or not isinstance(falls, bool):
            continue
        several = called(facts, call, "builtins.sorted") is not None
        if several and _range(facts, call.args[0]) is None:
            return None  # of tensors: another form
        if several or (called(facts, call, "builtins.max", "builtins.min") and len(node.keywords) == 1):
            given = key.args
            plain = len(given.args) == 1 and not (given.vararg or given.kwarg or given.kwonlyargs)
            if not plain or given.posonlyargs or given.defaults:
                return None
            function = "argmax()" if called(facts, call, "builtins.max") else "argmin()"
            if several:
                function = f"argsort({'descending=True, ' if falls else ''}stable=True).unbind()"
            return _Choice(call, call.args[0], given.args[0].arg, key.body, function, several)
    return None


def _asked(facts: FunctionFacts, key: ast.expr) -> ast.expr | None:
    """The tensor by which is chosen."""
    match key:
        case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[], keywords=[]):
            key = inner
    return key if is_tensor(facts, key) else None


def _numbers(
    facts: FunctionFacts,
    choice: _Choice,
    counted: ast.Call,
    place: str,
    imports: Imports,
    differences: list[Difference],
) -> Fix | Refusal:
    """One of the numbers of a `range` that begins with 0, or all of them in order."""
    if len(counted.args) != 1:
        return refuse(NAME, f"`{ast.unparse(choice.values)}` does not count from 0")
    uses = ScalarUses(facts, "int64", rewrites=True)
    try:
        (uses.parts if choice.several else uses.follow)(choice.call)
    except NeedsPythonNumberError as error:
        return refuse(NAME, str(error))
    if uses.also:
        return refuse(NAME, f"`{ast.unparse(uses.also[0])}` stays a Python number")

    def make() -> list[TextEdit]:
        made = written(facts, imports, {choice.call: place}, uses.counterparts)
        return [*imports.edits(), *(replace_expression(facts.source, n, text) for n, text in made.items())]

    return offer(NAME, _TITLE, facts, make, [*differences, *uses.differences])


def _tensor(
    facts: FunctionFacts, choice: _Choice, place: str, imports: Imports, differences: list[Difference]
) -> Fix | Refusal:
    """One of several tensors."""
    value, values = facts.value(choice.values), choice.values
    listed = isinstance(value, Container) and value.kind in ("list", "tuple") and isinstance(value.element, Tensor)
    if not listed or not isinstance(values, (ast.Name, ast.Attribute)):
        return refuse(NAME, f"`{ast.unparse(values)}` is not known to be a list of tensors")
    name = name_given(facts, choice.call)
    if name is not None and (changed_in_place(facts, name) or identified(facts, name)):
        return refuse(NAME, f"`{name}` is changed in place, or compared, and would be a copy")
    code = Code(facts.source)
    stacked = f"{imports.name('torch.stack')}({code.argument(values)})"
    text = f"{stacked}.index_select(0, {place}.reshape(1)).squeeze(0)"
    lost = "under no_grad the one chosen loses its gradient history"
    leaked = "gradients may become NaN where the derivative of a tensor that is not chosen is not finite"
    differences = [*differences, *_COPIED]
    differences.append(Difference("gradients", leaked if recorded(facts, facts.statement) else lost))

    def make() -> list[TextEdit]:
        return [*imports.edits(), replace_expression(facts.source, choice.call, text)]

    return offer(NAME, _TITLE, facts, make, differences)

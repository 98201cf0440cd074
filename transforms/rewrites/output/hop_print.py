"""Print from inside the graph with torch's own print operator; nothing to install.

Before:
    print("y", y)

After:
    torch._higher_order_ops.print("y {}", y)

Legal when:
    a plain `print` whose arguments are literals, tensors, and f-strings of these; `sep` a literal, no `end`,
    `file` or `flush`; it stands where `emit` may. The text is not empty (torch 2.13 loses an empty format string in
    aot_eager and inductor).

Differs in:
    a 0-d tensor prints as a number, without `tensor(...)`, except in an f-string, where it does so anyway;
    while compiled, a tensor that requires gradients prints without its `grad_fn`. The operator is private to
    torch.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.fstrings import quoted, template
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import called, constant, is_tensor
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.gradients.sides import recorded
from graphmend.transforms.legality.totality import may_raise
from graphmend.transforms.rewrites.answers import asks, offer, refuse
from graphmend.transforms.rewrites.output.emit import misplaced, output_call

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "hop_print"


@asks("totality", "gradients", "context", "names", leaves_names=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    call = output_call(facts)
    if call is None or called(facts, call, "builtins.print") is None:
        return None
    if reason := misplaced(facts, call):
        return refuse(NAME, reason)
    keywords = {k.arg: k.value for k in call.keywords}
    separator = constant(keywords.pop("sep", ast.Constant(" ")))
    if keywords or not isinstance(separator, str):
        return refuse(NAME, "torch's print operator knows no `end`, `file` or `flush`")
    pieces: list[str] = []
    values: list[ast.expr] = []
    differences = [Difference("private", "torch._higher_order_ops.print is private to torch")]
    for argument in call.args:
        inside: list[ast.expr] = []
        if isinstance(argument, ast.JoinedStr):
            text, inside = template(argument)
        elif isinstance(argument, ast.Constant) and isinstance(argument.value, (str, int, float)):
            text = str(argument.value).replace("{", "{{").replace("}", "}}")
        else:
            text, inside = "{}", [argument]
            value = facts.value(argument)
            if not (isinstance(value, Tensor) and value.rank):
                differences.append(Difference("output", "a 0-d tensor prints as a number, without `tensor(...)`"))
        pieces.append(text)
        values += inside
    plain = [_without_item(facts, v) for v in values]
    if not all(is_tensor(facts, v) for v in plain) or "!" in "".join(p for p in pieces if "{!" in p):
        return refuse(NAME, "only tensors and literals can be printed by torch's print operator")
    taken = [v for v, p in zip(values, plain, strict=True) if v is not p]
    differences += [
        Difference("exception", f"`{ast.unparse(v)}` no longer raises") for v in taken if may_raise(facts, v)
    ]
    form = separator.join(pieces)
    if not form:
        return refuse(NAME, "torch's print operator loses an empty text")
    if recorded(facts, facts.statement) and values:
        differences.append(
            Difference("output", "a tensor that requires gradients prints without its `grad_fn` while compiled")
        )

    def make() -> list[TextEdit]:
        imports, code = Imports(facts), Code(facts.source)
        operator = imports.name("torch._higher_order_ops.print")
        arguments = ", ".join([quoted(form), *map(code.argument, plain)])
        return [*imports.edits(), replace_expression(facts.source, call, f"{operator}({arguments})")]

    return offer(NAME, "print from inside the graph (torch._higher_order_ops.print)", facts, make, differences)


def _without_item(facts: FunctionFacts, node: ast.expr) -> ast.expr:
    """`t` for `t.item()`: both have the same text in a template."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr="item"), args=[], keywords=[]) if is_tensor(facts, value):
            return value
    return node

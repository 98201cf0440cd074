"""Write the text of a tensor as an f-string, which TorchDynamo fills when the graph has run.

Before:
    return y, str([x])

After:
    return y, f"[{x}]"

Legal when:
    it is `str` or `repr` of a tensor, or of a list or tuple that is written out, or `%s` in a literal. The tensor
    has a dimension for certain: a 0-d tensor would be written as its number. Nothing looks into the text, and nothing
    changes the tensor in place behind it.

Differs in:
    while compiled a tensor that requires gradients names another `grad_fn`.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.qualified_names import called, is_tensor
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal
from graphmend.transforms.legality.gradients.sides import recorded
from graphmend.transforms.legality.memory import changed_in_place
from graphmend.transforms.legality.numbers.said import is_only_text
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "text_form"


@asks("memory", "gradients", leaves_names=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    node = facts.node
    if not isinstance(node, ast.expr) or (parts := _parts(facts, node)) is None:
        return None
    code = Code(facts.source)
    pieces = []
    for part in parts:
        if isinstance(part, str):
            pieces.append(part.replace("{", "{{").replace("}", "}}"))
            continue
        text = code.operand(part)
        if not is_tensor(facts, part) or re.search(r"[\"'\\{}\n#]", text):
            return refuse(NAME, f"`{ast.unparse(part)}` cannot be written inside an f-string as a tensor")
        pieces.append(f"{{{text}}}")
    inside = "".join(pieces)
    if re.search(r"[\"\\\n]", inside):
        return refuse(NAME, "the text has quotes, or characters that are escaped")
    tensors = [facts.value(p) for p in parts if not isinstance(p, str)]
    if not all(isinstance(t, Tensor) and t.rank for t in tensors):
        return refuse(NAME, "an f-string writes a 0-d tensor as its number, and the tensor may be one")
    if not is_only_text(facts, node):
        return refuse(NAME, "a text that is looked into has its tensors only when the graph has run")
    if any(changed_in_place(facts, p, behind=facts.statement) for p in parts if not isinstance(p, str)):
        return refuse(NAME, "the tensor is changed in place before the graph has run, which writes it")
    differences = []
    if recorded(facts, facts.statement):
        differences.append(
            Difference("output", "while compiled a tensor that requires gradients names another `grad_fn`")
        )
    changed = replace_expression(facts.source, node, f'f"{inside}"')
    return offer(NAME, "write the text as an f-string", facts, lambda: [changed], differences)


def _parts(facts: FunctionFacts, node: ast.expr) -> list[str | ast.expr] | None:
    """Literal text and tensors, in the order of the text."""
    match node:
        case ast.Call(args=[ast.List(elts=elements)]) if called(facts, node, "builtins.str", "builtins.repr"):
            return ["[", *_joined(elements), "]"]
        case ast.Call(args=[ast.Tuple(elts=[_, _, *_] as elements)]) if called(
            facts, node, "builtins.str", "builtins.repr"
        ):
            return ["(", *_joined(elements), ")"]
        case ast.Call(args=[tensor], keywords=[]) if called(facts, node, "builtins.str", "builtins.repr"):
            return [tensor]
        case ast.BinOp(left=ast.Constant(value=str() as text), op=ast.Mod(), right=right):
            values = right.elts if isinstance(right, ast.Tuple) else [right]
            literal = text.split("%s")
            if "%" in "".join(literal) or len(literal) != len(values) + 1:
                return None
            pairs = zip(literal[1:], values, strict=True)
            return [literal[0], *(part for rest, value in pairs for part in (value, rest))]
    return None


def _joined(elements: list[ast.expr]) -> list[str | ast.expr]:
    parts: list[str | ast.expr] = []
    for element in elements:
        parts += [", ", element] if parts else [element]
    return parts

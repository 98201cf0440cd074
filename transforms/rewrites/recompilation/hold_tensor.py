"""Hold a number that changes from call to call in a 0-d tensor.

Before:
    def __init__(self):
        self.steps = 0

    def forward(self, x):
        self.steps += 1
        return x / self.steps

After:
    def __init__(self):
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64), persistent=False)

    def forward(self, x):
        self.steps = self.steps + 1
        return x / self.steps

Legal when:
    the number is an attribute that `__init__` sets, a global, or a variable around a compiled function, all of whose
    uses are in the file; each is given numbers of one type, ints or floats; compiled code only computes with it, in
    ways that a 0-d tensor does as well; other code reads it where a tensor is read alike. What counts in place makes
    a new tensor instead, as autograd may have saved the old one.

Differs in:
    what holds the number holds a 0-d tensor; who reads it as a number has to ask for it. What compiled code counts in
    on a module is a buffer, which moves with the module and is in no state dict; a float is none, as it would be cast
    with the module. Numbers are computed as tensors:
    whole ones wrap around at 64 bits and divide in 32 bits.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code, shortened
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.numbers.held import Held, NotHeldError, held
from graphmend.transforms.legality.outside.buffers import meets_buffer
from graphmend.transforms.legality.scalar_uses import NeedsPythonNumberError, ScalarUses
from graphmend.transforms.rewrites.answers import asks, offer, refuse
from graphmend.transforms.rewrites.varied_numbers import DTYPES, Kind, as_tensor, kind_of

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "hold_tensor"
_Assigns = ast.Assign | ast.AnnAssign
_OPERATORS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


@asks("memory", "numbers", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    variation = facts.variation
    kind = kind_of(variation) if variation is not None else None
    if variation is None or kind is None or variation.kind not in ("attribute", "global", "closure"):
        return None
    if variation.write is None or variation.write.module.source.path != facts.source.path:
        return None
    try:
        found = held(facts, variation)
        if found is None:
            return None
        # a buffer of floats would be cast along with the module
        if _keeps_outputs(variation.site.node):
            raise NotHeldError(
                "the compile call may ask for CUDA graphs, which write over the tensors of an earlier call"
            )
        found.is_buffer = variation.in_module and variation.write.traced and kind == "int"
        if found.is_buffer and (meets := meets_buffer(facts, found.name)) is not None:
            raise NotHeldError(meets)
        differences = _followed(facts, found, kind)
    except (NotHeldError, NeedsPythonNumberError) as error:
        return refuse(NAME, str(error))
    first = found.first if found.is_buffer else None
    says = f"`{found.shown}` is a 0-d tensor instead of a Python number"
    differences = [Difference("type", says), *differences]
    if first is not None:
        buffer = f"`{found.shown}` is a buffer, which `buffers()` lists and which moves with the module"
        differences.append(Difference("state", buffer))
    if kind == "int":
        differences.append(Difference("rounding", "whole numbers wrap around at 64 bits"))

    def make() -> list[TextEdit]:
        return _edits(facts, found, kind, first)

    title = f"hold `{found.shown}` in a 0-d {'buffer' if first is not None else 'tensor'}"
    return offer(NAME, title, facts, make, differences)


def _keeps_outputs(site: ast.expr) -> bool:
    """May compiled code give tensors whose memory the next call uses again?"""
    for keyword in site.keywords if isinstance(site, ast.Call) else ():
        plain = (None, "default", "max-autotune-no-cudagraphs")
        known = isinstance(keyword.value, ast.Constant) and keyword.value.value in plain
        if keyword.arg in (None, "mode", "options") and not known:
            return True
    return False


def _followed(facts: FunctionFacts, found: Held, kind: Kind) -> list[Difference]:
    """What differs where the number is read and written; raises where a tensor cannot stand there."""
    differences: list[Difference] = []
    for read in found.reads:
        if read.function is not None and read.function.is_traced(read.statement):
            uses = ScalarUses(read.function, DTYPES[kind])
            uses.follow(read.node)
            if uses.asks and not found.is_buffer:
                raise NotHeldError(f"`{shortened(uses.asks[0])}` asks for the number")
            differences += uses.differences
        elif not found.is_read_alike(read):
            raise NotHeldError(f"`{ast.unparse(read.statement)}` needs a Python number")
        if found.counted and not found.is_read_only(read):
            raise NotHeldError(f"`{found.shown}` is handed on, and what has it is not followed")
    for counted in found.counted:
        _check_count(found, counted, kind)
    return differences


def _check_count(found: Held, node: ast.AugAssign, kind: Kind) -> None:
    """`self.steps += 1`: the dtype of the tensor holds what comes out."""
    if any(isinstance(n, (ast.Call, ast.Subscript, ast.NamedExpr)) for n in nodes_in(node.target)):
        raise NotHeldError(f"`{ast.unparse(node.target)}` would be evaluated twice")
    whole = isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)) and found.is_whole(node.value)
    real = isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div)) and found.is_number(node.value)
    if not (whole if kind == "int" else real):
        raise NotHeldError(f"`{ast.unparse(node)}` is not known to give a number of the same type")


def _edits(facts: FunctionFacts, found: Held, kind: Kind, buffer: ast.stmt | None) -> list[TextEdit]:
    edits: list[TextEdit] = []
    code = Code(facts.source)
    for statement, function in found.stores:
        value = statement.value
        assert value is not None
        traced = function is not None and function.is_traced(statement)
        if traced and found.reads_in(value):
            continue  # computed as a tensor now
        imports = Imports(function if function is not None else facts)
        plain = f"{kind}({code.argument(value)})" if found.reads_in(value) else code.argument(value)
        tensor = as_tensor(imports, kind, value, plain)
        if statement is buffer:
            text = f'self.register_buffer("{found.name}", {tensor}, persistent=False)'
            edits.append(TextEdit(facts.source.span(statement), text))
        elif isinstance(statement, ast.AnnAssign):
            edits.append(TextEdit(facts.source.span(statement), f"{code.text(statement.target)} = {tensor}"))
        else:
            edits.append(replace_expression(facts.source, value, tensor))
        edits += imports.edits()
    for counted in found.counted:
        target, op = code.text(counted.target), _OPERATORS[type(counted.op)]
        text = f"{target} = {target} {op} {code.operand(counted.value)}"
        edits.append(TextEdit(facts.source.span(counted), text))
    return edits

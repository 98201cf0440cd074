"""Switch on the capture of scalars or of data-dependent shapes above the compile site: shown, never applied.

Before:
    @torch.compile
    def f(x, n):
        k = n.item()
        return x[:k]

After:
    torch._dynamo.config.capture_scalar_outputs = True

    @torch.compile
    def f(x, n):
        k = n.item()
        torch._check(k >= 0)
        torch._check(k <= x.shape[0])
        return x[:k]

Legal when:
    the break is one that only the default flags make. Whether the switch holds, only a check by TorchDynamo says:
    measured on 35 runs of models, both switches cleared half of the sites and turned the breaks of nine models into
    errors (torch 2.13).

Differs in:
    it is on for the whole program; where a branch or a size depends on the number and nothing bounds it, a break
    becomes an error.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.compile_site import site_of
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.module_level import insert_above
from graphmend.transforms.code.positions import begins_line, replaceable
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.rewrites.answers import asks, show

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "capture_switch"
_SWITCHES = {
    "GM301": "capture_scalar_outputs",
    "GM401": "capture_dynamic_output_shape_ops",
    "GM402": "capture_dynamic_output_shape_ops",
}
_REASON = (
    "it is on for the whole program, and a branch or a size that depends on what is captured becomes an error unless "
    "torch._check bounds it: let `graphmend verify` see whether it holds"
)


@asks("names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    switch = _SWITCHES.get(finding.code)
    site = site_of(finding, facts)
    if switch is None or site is None or not finding.default_flags_only or f"{switch} = True" in facts.source.text:
        return None
    if not begins_line(facts.source, site.top):
        return None
    bounds = _bounds(facts) if finding.code == "GM301" else []

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        line = f"{imports.name('torch._dynamo.config')}.{switch} = True"
        edits = [insert_above(facts, site.top, line)]
        if bounds:
            check = imports.name("torch._check")
            end = facts.source.span(facts.statement)._replace(
                line=facts.statement.end_lineno or facts.statement.lineno,
                column=facts.source.span(facts.statement).end_column,
            )
            newline = "\r\n" if "\r\n" in facts.source.text else "\n"
            indent = " " * facts.statement.col_offset
            edits.append(TextEdit(end, "".join(f"{newline}{indent}{check}({bound})" for bound in bounds)))
        return [*imports.edits(), *edits]

    return show(NAME, f"switch {switch} on where the program compiles", facts, make, _REASON)


def _bounds(facts: FunctionFacts) -> list[str]:
    """What the uses of a number as a size or as the end of a slice ask of it."""
    match facts.statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is facts.node:
            pass
        case _:
            return []
    if not replaceable(facts, [facts.statement]) or facts.source.text.count("\t"):
        return []
    code, found = Code(facts.source), [f"{name} >= 0"]
    for node in nodes_in(facts.function):
        match node:
            case ast.Subscript(value=tensor, slice=index) if isinstance(facts.value(tensor), Tensor):
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                for dim, part in enumerate(parts):
                    ends = [e for e in (part.lower, part.upper) if e] if isinstance(part, ast.Slice) else []
                    if any(isinstance(e, ast.Name) and e.id == name for e in ends):
                        found.append(f"{name} <= {code.operand(tensor)}.shape[{dim}]")
    return list(dict.fromkeys(found))

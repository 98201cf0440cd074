"""Compile with `fullgraph=True`, which captures scalars and data-dependent shapes: shown, never applied.

Before:
    @torch.compile
    def f(x, m):
        return x[m]

After:
    @torch.compile(fullgraph=True)
    def f(x, m):
        return x[m]

Legal when:
    the break is one that only the default flags make, and the code is compiled in the same file. Whether nothing
    else breaks, only a check by TorchDynamo says.

Differs in:
    every other break of the same compile call becomes an error (torch 2.13).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.transforms.code.compile_site import site_of
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Fix, Refusal
from graphmend.transforms.rewrites.answers import asks, show

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "fullgraph"
_REASON = "every other break of the same compile call becomes an error: let `graphmend verify` see whether it holds"


@asks()
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    site = site_of(finding, facts) if finding.default_flags_only else None
    if site is None:
        return None
    call, text = site.node, Code(facts.source).text(site.node)
    if not isinstance(call, ast.Call):
        new = f"{text}(fullgraph=True)"
    elif any(k.arg in ("fullgraph", None) for k in call.keywords):
        return None
    else:
        inside = text[:-1].rstrip().rstrip(",")
        new = f"{inside}{', ' if call.args or call.keywords else ''}fullgraph=True)"
    changed = replace_expression(facts.source, call, new)
    return show(NAME, "compile with fullgraph=True, which captures this", facts, lambda: [changed], _REASON)

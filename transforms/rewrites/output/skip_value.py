"""Use a stand-in while compiled for a value that eager code has to make.

Before:
    started = time.time()
    for step in tqdm(range(10)):

After:
    started = 0.0 if torch.compiler.is_compiling() else time.time()
    for step in range(10) if torch.compiler.is_compiling() else tqdm(range(10)):

Legal when:
    the call is one of those below: a clock, a progress bar around something to loop over, a context that only
    watches or chooses between kernels for the same, a question whether a logger would write.

Differs in:
    the value means nothing while compiled, no progress is shown, the context is not entered there.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import bound_anywhere
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, DifferenceKind, Fix, Refusal, TextEdit
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "skip_value"

_CLOCKS = ("time", "perf_counter", "monotonic", "process_time", "thread_time")
_WATCHING = (
    "warnings.catch_warnings",
    "torch.autograd.profiler.emit_nvtx",
    "torch.autograd.detect_anomaly",
    "torch.autograd.set_detect_anomaly",
    "tracemalloc.start",
)
#: contexts that choose between kernels that compute the same
_CHOOSING = ("torch.backends.cudnn.flags",)


@asks("names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    call = next((n for n in (facts.node, *facts.ancestors(facts.node)) if isinstance(n, ast.Call)), None)
    if isinstance(facts.node, (ast.With, ast.For)):
        inner = facts.node.items[0].context_expr if isinstance(facts.node, ast.With) else facts.node.iter
        call = inner if isinstance(inner, ast.Call) else None
    if call is None:
        return None
    name = qualified(facts, call.func)
    root = call.func
    while isinstance(root, ast.Attribute):
        root = root.value
    if name is None or (isinstance(root, ast.Name) and not bound_anywhere(facts, root.id)):
        return None
    folder, _, last = name.rpartition(".")
    parent = facts.parent(call)
    code = Code(facts.source)
    imports = Imports(facts)
    if isinstance(parent, ast.Expr):
        return None
    if folder == "time" and last.removesuffix("_ns") in _CLOCKS:
        stand_in, difference = ("0" if last.endswith("_ns") else "0.0"), "the clock stands still while compiled"
    elif last in ("tqdm", "trange", "track", "progress_bar") and call.args:
        stand_in, difference = code.operand(call.args[0]), "no progress is shown while compiled"
        if last == "trange":
            stand_in = f"range({', '.join(code.argument(a) for a in call.args)})"
    elif last == "isEnabledFor":
        stand_in, difference = "False", "the logger does not write while compiled"
    elif isinstance(parent, ast.withitem) and name in (*_WATCHING, *_CHOOSING):
        if parent.optional_vars is not None:
            return refuse(NAME, "what the context gives is used")
        stand_in, difference = (
            f"{imports.name('contextlib.nullcontext', 'contextlib')}()",
            "the context is not entered while compiled",
        )
        if name in _CHOOSING:
            difference += ", so that other kernels may be chosen there"
    else:
        return None

    def make() -> list[TextEdit]:
        compiling = imports.name("torch.compiler.is_compiling")
        text = f"{stand_in} if {compiling}() else {code.text(call)}"
        bare = isinstance(parent, (ast.Assign, ast.For, ast.Return, ast.keyword))
        return [*imports.edits(), replace_expression(facts.source, call, text if bare else f"({text})")]

    silences = finding.code in ("GM202", "GM203", "GM204")
    kind: DifferenceKind = "output" if silences else "state"
    return offer(NAME, "use a stand-in while compiled", facts, make, [Difference(kind, difference)], silences=silences)

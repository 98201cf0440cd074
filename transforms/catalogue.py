"""Which rewrites answer which finding, in order of preference. One line for one kind of break; nothing is registered elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from graphmend.transforms import (
    assert_async,
    computed_index,
    conditional_output,
    emit,
    guard,
    hop_print,
    keep_tensor,
    match_where,
    stop_mask,
    where,
    where_expression,
    while_loop,
)
from graphmend.transforms.fix import Fix, Refusal

if TYPE_CHECKING:
    from graphmend.analysis.facts import FunctionFacts
    from graphmend.analysis.finding import Finding

#: None means that the rewrite has nothing to say about code of this form
Rewrite = Callable[["Finding", "FunctionFacts"], Fix | Refusal | None]

_LOOPS: tuple[Rewrite, ...] = (stop_mask.rewrite, while_loop.rewrite)
_BRANCHES: tuple[Rewrite, ...] = (
    conditional_output.rewrite,
    *_LOOPS,
    where.rewrite,
    where_expression.rewrite,
    match_where.rewrite,
)
_TESTS: tuple[Rewrite, ...] = (assert_async.rewrite, *_BRANCHES)

CATALOGUE: tuple[tuple[str, tuple[Rewrite, ...]], ...] = (
    ("GM101", _BRANCHES),
    ("GM102", (assert_async.rewrite,)),
    ("GM103", (assert_async.rewrite,)),
    ("GM104", _TESTS),
    ("GM105", _LOOPS),
    ("GM201", (emit.rewrite, hop_print.rewrite, guard.rewrite)),
    ("GM202", (emit.rewrite, guard.rewrite)),
    ("GM203", (emit.rewrite, guard.rewrite)),
    ("GM204", (emit.rewrite, guard.rewrite)),
    ("GM301", (computed_index.rewrite, *_TESTS, while_loop.rewrite, keep_tensor.rewrite, emit.rewrite, guard.rewrite)),
    ("GM303", (computed_index.rewrite,)),
)


def rewrites_for(finding: Finding) -> tuple[Rewrite, ...]:
    """The rewrites for a finding, best first."""
    return next((rewrites for code, rewrites in CATALOGUE if finding.code == code), ())

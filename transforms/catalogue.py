"""Which rewrites answer which finding, in order of preference. One line for one kind of break; nothing is
registered elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphmend.transforms.rewrites.answers import Rewrite as Rewrite
from graphmend.transforms.rewrites.branch_forms import (
    added_part,
    by_case,
    chosen_by_truth,
    context_outside,
    guard_clause,
    in_turn,
    last_leave,
    late_choice,
    named_fields,
    on_a_copy,
    same_end,
    spelled_out,
)
from graphmend.transforms.rewrites.control_flow import (
    assert_async,
    check_all,
    cond,
    logical,
    match_branch,
    range_guard,
    select,
    select_buffer,
    stop_mask,
    where,
    where_expression,
    while_loop,
)
from graphmend.transforms.rewrites.exceptions import asked_before, with_default
from graphmend.transforms.rewrites.in_graph import array_on_host, ctc_loss, on_host, rest_on_host, stores_on_host
from graphmend.transforms.rewrites.inlining import body_of_call, body_of_generator
from graphmend.transforms.rewrites.loop_forms import (
    as_break,
    as_comprehension,
    as_loop,
    filter_inside,
    filtered_extreme,
    indices_as_mask,
    kept_along,
    loop_outside,
    number_first,
    stop_flag,
)
from graphmend.transforms.rewrites.mask_forms import (
    either_picked,
    expanded_mask,
    first_place,
    mask_alone,
    one_of_each,
    place_grids,
)
from graphmend.transforms.rewrites.masks import always_masked, filled_in_order, nothing_picked
from graphmend.transforms.rewrites.output import (
    conditional_output,
    eager_context,
    emit,
    guard,
    hoist,
    hop_print,
    recorded,
    skip_value,
    text_form,
)
from graphmend.transforms.rewrites.protocols import (
    namespace_as_names,
    order_of_objects,
    special_method,
    written_out,
)
from graphmend.transforms.rewrites.recompilation import compile_dynamic, hold_tensor, make_once, pass_tensor
from graphmend.transforms.rewrites.scalars import (
    as_operators,
    computed_index,
    counter_buffer,
    drawn_place,
    keep_tensor,
    new_value,
    segments,
    tensor_argument,
    tensor_box,
)
from graphmend.transforms.rewrites.shapes import (
    drop_guard,
    empty_guard,
    every_index,
    every_row,
    every_value,
    known_size,
    mask_index,
    masked,
    masked_reduce,
    masked_store,
    pick_later,
    tensor_slice,
)
from graphmend.transforms.rewrites.torch_api import (
    by_key,
    capture_switch,
    copied_container,
    device_context,
    fullgraph,
    gradient_flags,
    heap_as_sort,
    name_argument,
    numpy_form,
    order_by_key,
    torch_form,
)

if TYPE_CHECKING:
    from graphmend.analysis.finding import Finding

_FORMS: tuple[Rewrite, ...] = (
    guard_clause.rewrite,
    last_leave.rewrite,
    loop_outside.rewrite,
    context_outside.rewrite,
    spelled_out.rewrite,
    asked_before.rewrite,
    with_default.rewrite,
    new_value.rewrite,
    same_end.rewrite,
    late_choice.rewrite,
    by_case.rewrite,
    chosen_by_truth.rewrite,
    added_part.rewrite,
    filter_inside.rewrite,
    kept_along.rewrite,
    filtered_extreme.rewrite,
    as_loop.rewrite,
    as_break.rewrite,
    as_comprehension.rewrite,
    on_a_copy.rewrite,
    stop_flag.rewrite,
    number_first.rewrite,
    in_turn.rewrite,
    named_fields.rewrite,
    body_of_generator.rewrite,
    body_of_call.rewrite,
)
_LOOPS: tuple[Rewrite, ...] = (stop_mask.rewrite, while_loop.rewrite)
_BRANCHES: tuple[Rewrite, ...] = (
    always_masked.rewrite,
    filled_in_order.rewrite,
    nothing_picked.rewrite,
    drop_guard.rewrite,
    empty_guard.rewrite,
    conditional_output.rewrite,
    *_LOOPS,
    select_buffer.rewrite,
    select.rewrite,
    where.rewrite,
    where_expression.rewrite,
    logical.rewrite,
    match_branch.rewrite,
    cond.rewrite,
    range_guard.rewrite,
    *_FORMS,
)
_MASKED: tuple[Rewrite, ...] = (masked.rewrite, masked_reduce.rewrite, masked_store.rewrite, pick_later.rewrite)
_SWITCHES: tuple[Rewrite, ...] = (capture_switch.rewrite, fullgraph.rewrite)
_TESTS: tuple[Rewrite, ...] = (assert_async.rewrite, *_BRANCHES, stores_on_host.rewrite)

CATALOGUE: tuple[tuple[str, tuple[Rewrite, ...]], ...] = (
    ("GM101", (torch_form.rewrite, order_by_key.rewrite, by_key.rewrite, *_TESTS)),
    ("GM102", (assert_async.rewrite,)),
    ("GM103", (assert_async.rewrite,)),
    ("GM104", (torch_form.rewrite, order_by_key.rewrite, by_key.rewrite, *_TESTS)),
    ("GM105", (*_LOOPS, masked_store.rewrite, stores_on_host.rewrite)),
    ("GM201", (emit.rewrite, hop_print.rewrite, guard.rewrite)),
    ("GM202", (emit.rewrite, hoist.rewrite, skip_value.rewrite, guard.rewrite)),
    ("GM203", (emit.rewrite, skip_value.rewrite, guard.rewrite)),
    ("GM204", (emit.rewrite, skip_value.rewrite, guard.rewrite)),
    (
        "GM205",
        (
            rest_on_host.rewrite,
            on_host.rewrite,
            torch_form.rewrite,
            numpy_form.rewrite,
            order_by_key.rewrite,
            by_key.rewrite,
            keep_tensor.rewrite,
            emit.rewrite,
            drawn_place.rewrite,
            array_on_host.rewrite,
            eager_context.rewrite,
            skip_value.rewrite,
            hoist.rewrite,
            guard.rewrite,
        ),
    ),
    ("GM206", (guard.rewrite,)),
    (
        "GM301",
        (
            rest_on_host.rewrite,
            on_host.rewrite,
            filled_in_order.rewrite,
            segments.rewrite,
            counter_buffer.rewrite,
            computed_index.rewrite,
            indices_as_mask.rewrite,
            torch_form.rewrite,
            order_by_key.rewrite,
            by_key.rewrite,
            *_TESTS,
            as_operators.rewrite,
            keep_tensor.rewrite,
            emit.rewrite,
            recorded.rewrite,
            guard.rewrite,
            *_SWITCHES,
        ),
    ),
    ("GM302", (rest_on_host.rewrite, on_host.rewrite, order_by_key.rewrite, keep_tensor.rewrite, text_form.rewrite)),
    (
        "GM303",
        (
            rest_on_host.rewrite,
            on_host.rewrite,
            torch_form.rewrite,
            computed_index.rewrite,
            body_of_call.rewrite,
        ),
    ),
    (
        "GM401",
        (
            ctc_loss.rewrite,
            first_place.rewrite,
            every_index.rewrite,
            every_value.rewrite,
            every_row.rewrite,
            indices_as_mask.rewrite,
            empty_guard.rewrite,
            *_MASKED,
            mask_index.rewrite,
            expanded_mask.rewrite,
            either_picked.rewrite,
            place_grids.rewrite,
            torch_form.rewrite,
            known_size.rewrite,
            body_of_call.rewrite,
            stores_on_host.rewrite,
            *_SWITCHES,
        ),
    ),
    (
        "GM402",
        (
            one_of_each.rewrite,
            *_MASKED,
            mask_alone.rewrite,
            either_picked.rewrite,
            known_size.rewrite,
            body_of_call.rewrite,
            *_SWITCHES,
        ),
    ),
    (
        "GM403",
        (
            rest_on_host.rewrite,
            on_host.rewrite,
            filled_in_order.rewrite,
            torch_form.rewrite,
            computed_index.rewrite,
            tensor_argument.rewrite,
            tensor_box.rewrite,
            tensor_slice.rewrite,
            body_of_call.rewrite,
            stores_on_host.rewrite,
        ),
    ),
    (
        "GM501",
        (
            written_out.rewrite,
            namespace_as_names.rewrite,
            name_argument.rewrite,
            copied_container.rewrite,
            torch_form.rewrite,
            heap_as_sort.rewrite,
            order_by_key.rewrite,
            by_key.rewrite,
            keep_tensor.rewrite,
            hoist.rewrite,
            skip_value.rewrite,
            guard.rewrite,
        ),
    ),
    ("GM510", (special_method.rewrite, order_of_objects.rewrite, written_out.rewrite)),
    ("GM605", (ctc_loss.rewrite, device_context.rewrite, eager_context.rewrite, skip_value.rewrite)),
    ("GM601", (gradient_flags.rewrite,)),
    (
        "GM604",
        (
            check_all.rewrite,
            *_TESTS,
            torch_form.rewrite,
            device_context.rewrite,
            gradient_flags.rewrite,
            skip_value.rewrite,
        ),
    ),
    ("GM701", (hold_tensor.rewrite, compile_dynamic.number)),
    ("GM702", (compile_dynamic.rewrite, pass_tensor.rewrite, compile_dynamic.number)),
    ("GM705", (compile_dynamic.rewrite,)),
    ("GM706", (compile_dynamic.rewrite,)),
    ("GM707", (hold_tensor.rewrite, compile_dynamic.number)),
    ("GM709", (make_once.rewrite, pass_tensor.rewrite, compile_dynamic.number)),
    ("GM711", (hold_tensor.rewrite,)),
    ("GM712", (make_once.rewrite,)),
)


def rewrites_for(finding: Finding) -> tuple[Rewrite, ...]:
    """The rewrites for a finding, best first."""
    return next((rewrites for code, rewrites in CATALOGUE if finding.code == code), ())

"""What a test keeps an operation away from is evaluated by no mend where it was not, but for an index, for which 0 can
stand there; a test of something else keeps nothing away.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz_mends.given import programs
from fuzz_mends.mending import every

HERE = Path(__file__).parent
PROGRAMS = {p.seed.partition("/")[2]: p.text for p in programs(HERE / "attacks" / "kept_away.txt")}
MENDED = {
    "store_at_a_count_under_a_test_of_something_else",
    "place_of_the_largest_under_a_test_of_the_sum",
    "known_place_under_a_bound_of_the_rows_and_a_test",
    "rows_of_a_loop_under_a_test_of_each",
    "remainder_of_whole_numbers_where_there_is_a_divisor",
    "loss_where_not_all_is_ignored",
}
#: those with an index in a tensor, which is kept inside
INDEXED = {
    "store_at_a_count_that_the_test_compares_with_the_rows",
    "store_at_a_tensor_that_the_test_bounds_by_a_name",
    "read_in_an_expression_with_a_bound",
    "read_on_the_other_side_of_a_bound",
    "store_behind_a_return_where_there_is_no_room",
    "store_in_a_branch_of_another_test_inside_a_bound",
    "store_under_a_bound_and_another_test",
    "row_added_at_a_bounded_count",
    "rows_stored_at_a_slice_that_the_test_bounds",
    "gathered_where_all_indices_are_in_range",
    "read_until_a_bound_is_reached",
    "rows_of_a_layer_under_a_bound_of_all",
}
#: mends that leave the branch on the operation
ONLY_IN_ITS_BRANCH = {"keep_tensor", "in_turn", "tensor_slice", "computed_index", "guard_clause"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_sides_are_evaluated_where_none_is_kept_away(name: str) -> None:
    mends = every(PROGRAMS[name])
    made = {rewrite for text in (mends.safe, mends.unsafe, *mends.offered) for rewrite in text.rewrites}
    assert bool(made - ONLY_IN_ITS_BRANCH) == (name in MENDED | INDEXED)

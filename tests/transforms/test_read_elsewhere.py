"""A number that is kept in an attribute becomes a tensor where the other functions of the file do the same with one, or
only hand it out, and in no other case.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz_mends.given import programs
from fuzz_mends.mending import every

HERE = Path(__file__).parent
PROGRAMS = {p.seed.partition("/")[2]: p.text for p in programs(HERE / "attacks" / "kept_and_handed_out.txt")}
MENDED = {
    "read_by_percent",
    "formatted",
    "handed_back_in_a_dict",
    "appended",
    "read_while_made",
    "kept_in_history",
    "in_tuple",
    "history_averaged",
    "made_anew",
    "given_to_who_is_not_in_sight",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_reads_it_elsewhere_decides(name: str) -> None:
    assert ("keep_tensor" in every(PROGRAMS[name]).unsafe.rewrites) == (name in MENDED)

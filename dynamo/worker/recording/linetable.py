"""Corrects the line numbers of Dynamo's resume functions (torch 2.13.0 and before, Python 3.11 and later).

Its line-table writer splits an instruction longer than eight code units into chunks and writes the line delta with
each of them, where the format wants it once. `LOAD_METHOD` has eleven units on 3.11: after a method chain over
several lines, every later line of the frame is too large. Feeding the chunks one by one makes the later deltas zero.
"""

from __future__ import annotations

from typing import Any

LONGEST = 8
"""Code units that one entry of the line table can cover."""


def correct() -> None:
    """Does nothing where torch has no such writer, or the second time."""
    from torch._dynamo import bytecode_transformation

    inner = getattr(bytecode_transformation, "linetable_311_writer", None)
    if inner is None or getattr(inner, "corrected", False):
        return

    def linetable_311_writer(first_line: int) -> Any:
        table, update = inner(first_line)

        def by_chunks(positions: Any, size: int) -> None:
            while size > LONGEST:
                update(positions, LONGEST)
                size -= LONGEST
            update(positions, size)

        return table, by_chunks

    linetable_311_writer.corrected = True  # type: ignore[attr-defined]
    vars(bytecode_transformation)["linetable_311_writer"] = linetable_311_writer

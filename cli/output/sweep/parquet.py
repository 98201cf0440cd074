"""The results of a sweep as a Parquet file: a row for each model. The only file that imports pyarrow."""

from __future__ import annotations

import importlib.util
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Line = Mapping[str, Any]


def is_there() -> bool:
    """Whether pyarrow is installed."""
    return importlib.util.find_spec("pyarrow") is not None


def data(lines: Sequence[Line]) -> bytes:
    """The file. Columns are those of a line's models, what holds for the whole line, and its report as JSON."""
    import pyarrow
    from pyarrow import parquet

    words, numbers = pyarrow.string(), pyarrow.int64()
    schema = pyarrow.schema(
        [(name, words) for name in ("target", "model", "outcome", "reason", "problem")]
        + [(name, numbers) for name in _COUNTS]
        + [("mends", numbers), ("node", words), ("seconds", pyarrow.float64()), ("cpu_seconds", pyarrow.float64())]
        + [("memory", numbers), ("graphmend", words), ("report", words)]
    )
    out = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist([row for line in lines for row in _rows(line)], schema), out)
    return out.getvalue()


_COUNTS = ("graphs", "graphs_mended", "breaks", "breaks_mended", "compilations", "compilations_mended")


def _rows(line: Line) -> Iterator[dict[str, Any]]:
    took = {name: line["run"][name] for name in ("node", "seconds", "cpu_seconds", "memory")}
    whole = {**took, "target": line["target"], "mends": line["mends"]["made"], "graphmend": line["graphmend"]}
    for model in line["models"]:
        counts = {name: model[name] for name in (*_COUNTS, "outcome", "reason", "problem")}
        yield {**whole, **counts, "model": model["name"], "report": json.dumps(line["report"])}

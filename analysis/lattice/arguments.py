"""The arguments of a call, as values."""

from __future__ import annotations

from collections.abc import Mapping

from graphmend.analysis.lattice.values import Value

Arguments = tuple[Value, ...]


Keywords = Mapping[str, Value]

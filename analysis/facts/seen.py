"""What walks brought to statements and expressions, joined when it is asked for: little is, and a function is walked
once for each kind of arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from graphmend.analysis.lattice.environment import Environment
from graphmend.analysis.lattice.values import Value, join, join_all

#: how many environments of a statement, or values of an expression, are kept before they are joined
_MOST = 64


class SeenValues(Mapping[ast.AST, Value]):
    """By expression: the join of the values that it had on every visit."""

    def __init__(self) -> None:
        self._seen: dict[ast.AST, list[Value]] = {}

    def record(self, node: ast.AST, value: Value) -> None:
        """Adds one visit."""
        seen = self._seen.get(node)
        if seen is None:
            self._seen[node] = [value]
        elif seen[-1] is not value:  # most visits bring the same object
            seen.append(value)
            if len(seen) > _MOST:
                seen[:] = [join_all(seen)]

    def __getitem__(self, node: ast.AST) -> Value:
        seen = self._seen[node]
        if len(seen) > 1:
            seen[:] = [join_all(seen)]
        return seen[0]

    def __contains__(self, node: object) -> bool:
        return node in self._seen

    def __iter__(self) -> Iterator[ast.AST]:
        return iter(self._seen)

    def __len__(self) -> int:
        return len(self._seen)


class SeenEnvironments(Mapping[ast.stmt, Mapping[str, Value]]):
    """By statement: the names that were bound before it on every visit, with the joins of their values."""

    def __init__(self) -> None:
        self._seen: dict[ast.stmt, list[Environment]] = {}

    def record(self, statement: ast.stmt, env: Environment) -> None:
        """Adds one visit; `env` may change afterwards."""
        seen = self._seen.setdefault(statement, [])
        seen.append(dict(env))
        if len(seen) > _MOST:
            seen[:] = [_joined(seen)]

    def __getitem__(self, statement: ast.stmt) -> Mapping[str, Value]:
        seen = self._seen[statement]
        if len(seen) > 1:
            seen[:] = [_joined(seen)]
        return seen[0]

    def __contains__(self, statement: object) -> bool:
        return statement in self._seen

    def __iter__(self) -> Iterator[ast.stmt]:
        return iter(self._seen)

    def __len__(self) -> int:
        return len(self._seen)


def _joined(seen: list[Environment]) -> Environment:
    first, *others = seen
    found: Environment = {}
    for name, value in first.items():
        known = {id(value)}  # most visits bring the same object
        for env in others:
            new = env.get(name)
            if new is None:
                break
            if id(new) not in known:
                known.add(id(new))
                value = join(value, new)
        else:
            found[name] = value
    return found

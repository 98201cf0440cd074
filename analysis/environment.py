"""What the names of a function are worth at one point of its walk, and how two such states are joined."""

from __future__ import annotations

from graphmend.analysis.values import Value, join

#: local names, and dotted paths such as `self.x`, to values
Environment = dict[str, Value]


def merge(a: Environment, b: Environment) -> Environment:
    """The join of two environments: names that only one side binds may be unbound, but keep their value."""
    if a is b:
        return a
    merged = dict(a)
    for name, value in b.items():
        old = merged.get(name)
        if old is None:
            if "." not in name:
                merged[name] = value
        elif old is not value:
            merged[name] = join(old, value)
    for name in a:
        if "." in name and name not in b:
            del merged[name]
    return merged


def same(a: Environment, b: Environment) -> bool:
    """Whether two environments say the same, evidence aside."""
    return a.keys() == b.keys() and all(v is b[k] or v.key == b[k].key for k, v in a.items())

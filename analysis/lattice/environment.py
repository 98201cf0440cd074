"""Environments: the values of a function's names at one point of its walk, their join and their refinement."""

from __future__ import annotations

from graphmend.analysis.lattice.evidence import Evidence
from graphmend.analysis.lattice.values import NONE, UNKNOWN, Tensor, Value, as_input, join

#: local names, and dotted paths such as `self.x`, to values
Environment = dict[str, Value]


def merge(a: Environment, b: Environment) -> Environment:
    """The join of two environments. A name that one side binds keeps its value, though it may be unbound; a dotted path
    that one side binds is dropped."""
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
    for name in a.keys() - b.keys():
        if "." in name:
            del merged[name]
    return merged


def same(a: Environment, b: Environment) -> bool:
    """Whether two environments are equal, evidence aside."""
    return a.keys() == b.keys() and all(v is b[k] or v.key == b[k].key for k, v in a.items())


def behind_break(env: Environment, always: bool) -> Environment:
    """The environment behind a graph break: tensors that were computed before it enter the next graph (`as_input`)."""
    changed = {}
    for name, value in env.items():
        if value.may_hold_tensor and not (isinstance(value, Tensor) and value.graph_input):
            entering = as_input(value, always)
            if entering is not value:
                changed[name] = entering
    return {**env, **changed} if changed else env


def filled_in(before: Environment, branch: Environment, after: Environment) -> Environment:
    """Names of unknown value that a branch replaces where they are None: `if p is None: p = x.sum()`. They are likely a
    tensor on the other side, too.

    `branch` holds the names as the condition refines them, `after` the environment at the end of the branch.
    """
    absent = [name for name, value in branch.items() if value is NONE and before.get(name) is UNKNOWN]
    return {name: _likely(value, name) for name in absent if isinstance(value := after.get(name), Tensor)}


def _likely(value: Tensor, name: str) -> Tensor:
    origin = Evidence("is a Tensor where it was None, so one otherwise, too", name, value.origin)
    kind = value.dtype if isinstance(value.dtype, str) else None
    return Tensor(origin, None, kind, None, likely=True, ndarray=value.ndarray)

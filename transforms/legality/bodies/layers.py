"""What calling a layer or a function of torch does besides computing, by its name."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from enum import IntFlag, auto
from functools import lru_cache, reduce
from operator import or_
from typing import NamedTuple

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Value
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.legality.operations import aliases, flags
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.rows.modules import is_made_with_flags

#: layers that have running statistics; those of `SyncBatchNorm` wait for other processes
_MOVE = frozenset(f"torch.nn.{kind}Norm{n}d" for kind in ("Batch", "Instance") for n in (1, 2, 3))


class Effect(IntFlag):
    """What code does besides computing."""

    NOTHING = 0
    DRAWS = auto()
    """It draws from torch's default generators."""
    MOVES = auto()
    """It moves the running statistics of normalising layers."""
    UNKNOWN = auto()
    STAYS = auto()
    """It changes something else: attributes, buffers, what it was given."""
    SAYS = auto()
    """It prints, logs or warns."""


class Does(NamedTuple):
    """What code does, and the first part of it that is not known, or stays."""

    effect: Effect
    part: str = ""


NOT_KNOWN = Does(Effect.UNKNOWN)


def together(found: Iterable[Does]) -> Does:
    """What several pieces of code do."""
    every = [*found]
    effect = reduce(or_, (one.effect for one in every), Effect.NOTHING)
    worst = max(every, key=lambda one: (Effect.STAYS in one.effect, Effect.UNKNOWN in one.effect), default=NOT_KNOWN)
    return Does(effect, worst.part)


def of_layer(cls: str, tree: ast.AST, new: bool) -> Does:
    """What a layer made in `tree` does; `new`: nothing else has what it is given, so that it may change it."""
    name = cls.rpartition(".")[2]
    if name in flags.LAYER_INPLACE:
        stays = not new and _may_work_in_place(tree, name)
    else:
        stays = is_made_with_flags(tree, name)
    if stays:
        return Does(Effect.STAYS, f"`{name}`")
    if cls in _MOVE:
        return Does(Effect.MOVES)
    if cls in known.RANDOM_LAYERS:
        return Does(Effect.DRAWS)
    return Does(Effect.NOTHING) if cls in known.LAYERS else Does(Effect.UNKNOWN, f"`{name}`")


@lru_cache(maxsize=64)
def _may_work_in_place(tree: ast.AST, name: str) -> bool:
    """Is a layer anywhere made, or told later, to work in place, also by another name than its own?"""
    nodes = [*nodes_in(tree)]
    if is_made_with_flags(tree, name) or any(_is_told(n) for n in nodes):
        return True
    if not any(isinstance(n, ast.keyword) and n.arg == "inplace" for n in nodes):
        return False
    called = {n.func for n in nodes if isinstance(n, ast.Call)}
    renamed = (isinstance(n, ast.alias) and n.name == name and n.asname for n in nodes)
    return any(renamed) or any(_is_named(n, name) and n not in called for n in nodes)


def _is_told(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "inplace" and isinstance(node.ctx, ast.Store)


def _is_named(node: ast.AST, name: str) -> bool:
    return (isinstance(node, ast.Name) and node.id == name) or (isinstance(node, ast.Attribute) and node.attr == name)


def asks_in_place(node: ast.Call, last: str) -> bool:
    """May a call be asked to change what it is given first?"""
    asked = [k.value for k in node.keywords if k.arg == "inplace"]
    place = flags.INPLACE.get(last)
    asked += node.args[place : place + 1] if place is not None else []
    return any(not (isinstance(a, ast.Constant) and a.value is False) for a in asked)


def layer_gives_new(layer: ExternalInstance) -> bool:
    """Does a layer give memory of its own, whatever it is given?"""
    last = layer.cls.rpartition(".")[2]
    shared = last in aliases.LAYERS_MAY_BE_INPUT or last in aliases.LAYERS_VIEW or last in flags.LAYER_INPLACE
    return not shared and (layer.cls in known.LAYERS or layer.cls in _MOVE)


def passes_on(value: Value) -> bool:
    """Does a layer give what it is given, or a view or a copy of it?"""
    if not isinstance(value, ExternalInstance):
        return False
    last = value.cls.rpartition(".")[2]
    return last in aliases.LAYERS_MAY_BE_INPUT or last in aliases.LAYERS_VIEW or last in flags.LAYER_INPLACE

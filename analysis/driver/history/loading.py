"""The batches of a DataLoader: what its dataset yields, put together as torch's default collation does it (torch 2.13,
`torch.utils.data.default_collate`) or as the program's own function does."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.driver.execution.objects import (
    ANY,
    UNKNOWN,
    Atom,
    Callable,
    Constant,
    Object,
    Scope,
    Values,
    mapping,
    sequence,
    union,
)
from graphmend.analysis.driver.guards.atoms import Tensor, only, raw_of, tensor

if TYPE_CHECKING:
    from graphmend.analysis.driver.history.interface import Recorder

LOADER = "torch.utils.data.DataLoader"
DATASET = "torch.utils.data.TensorDataset"
#: functions that give parts of a dataset: how many are told apart
SPLITS = {"torch.utils.data.random_split": 3, "torch.utils.data.dataset.random_split": 3}
#: batches of known sizes that are told apart
_MOST = 3
_KINDS: dict[type, str] = {bool: "bool", int: "int64", float: "float64"}


def batches(m: Recorder, arguments: list[Values], keywords: dict[str, Values], node: ast.expr, scope: Scope) -> Values:
    """What a loop over a DataLoader binds. The sizes are known where the dataset is of tensors with known sizes."""
    dataset = arguments[0] if arguments else keywords.get("dataset", UNKNOWN)
    size = only(arguments[1] if len(arguments) > 1 else keywords.get("batch_size", (Constant(1),)))
    rest = only(keywords.get("drop_last", (Constant(False),))) is not True
    held = dataset[0] if len(dataset) == 1 else None
    item = _item(m, held, node, scope) if held is not None else UNKNOWN
    if "collate_fn" in keywords and only(keywords["collate_fn"]) is not None:
        made = m.call(keywords["collate_fn"], [(sequence([], item),)], {}, node, scope)
        return (sequence([], made or UNKNOWN),)
    if size is None:  # nothing is put together: numbers stay numbers
        return (sequence([], item),)
    sizes = _sizes(held, size, rest)
    if sizes is None:
        return (sequence([], _collated(item, None)),)
    return (sequence([_collated(item, one) for one in sizes]),)


def split(dataset: Values, name: str) -> Values:
    """Parts of a dataset, which yield what it does."""
    return (sequence([dataset] * SPLITS[name]),)


def _sizes(dataset: Atom | None, size: object, rest: bool) -> list[int] | None:
    """The sizes of the first batches and of the last one; None where they are not known."""
    if not isinstance(dataset, Object) or dataset.name != DATASET or not isinstance(size, int) or size <= 0:
        return None
    lengths = {one.shape[0] if one is not None and one.shape else None for one in map(tensor, dataset.items or ())}
    length = lengths.pop() if len(lengths) == 1 else None
    if length is None:
        return None
    return [size] * min(length // size, _MOST) + [length % size] * (length % size > 0 and rest)


def _item(m: Recorder, dataset: Atom, node: ast.expr, scope: Scope) -> Values:
    """What a dataset gives for an index."""
    if not isinstance(dataset, Object):
        return UNKNOWN
    if dataset.name == DATASET:
        return (sequence([_row(values) for values in dataset.items or ()], name="builtins.tuple"),)
    if dataset.items is not None:
        return union(*dataset.items, dataset.rest) or UNKNOWN
    if dataset.info is None:
        return UNKNOWN
    for method in m.attribute(dataset, "__getitem__", scope):
        if isinstance(method, Callable):
            return m.call((method,), [UNKNOWN], {}, node, scope)
    return UNKNOWN


def _row(values: Values) -> Values:
    one = tensor(values)
    if one is None:
        return UNKNOWN
    return (Tensor(one.shape[1:] if one.shape else None, one.dtype, one.gradient),)


def _collated(item: Values, size: int | None, made: dict[Atom, Atom] | None = None) -> Values:
    """One batch of items that are alike. `made` holds what was made of containers: one may stand in many places, and
    in itself."""
    made = {} if made is None else made
    return union(*((_together(atom, size, made),) for atom in item)) if item else UNKNOWN


def _together(atom: Atom, size: int | None, made: dict[Atom, Atom]) -> Atom:
    if isinstance(atom, Tensor):
        shape = None if atom.shape is None else (size, *atom.shape)
        return Tensor(shape, atom.dtype, atom.gradient)
    kind = _KINDS.get(type(raw_of(atom)))
    if kind is not None:
        return Tensor((size,), kind)
    if not isinstance(atom, Object):
        return ANY
    if atom in made:
        return made[atom]
    made[atom] = ANY
    if atom.fields is not None:
        held = {key: _collated(values, size, made) for key, values in atom.fields.items()}
        made[atom] = mapping(held, name=atom.name)
    elif atom.items is not None and not atom.rest:
        made[atom] = sequence([_collated(values, size, made) for values in atom.items], name=atom.name)
    return made[atom]

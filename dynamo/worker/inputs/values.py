"""Values to try for a parameter: from its annotation, from how the source uses it, from its name."""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Iterator
from typing import Any

import torch

from ..project.values import UNKNOWN
from .reading.shapes import BATCH, LENGTH, Call, Source, Tensor
from .reading.usage import Use

_JAXTYPING = re.compile(r"\b(Float\w*|Int\w*|UInt\w*|Bool|Shaped|Num|Inexact|BFloat16)\[[^,\]]*,\s*['\"]([^'\"]*)['\"]")
_TENSOR = re.compile(r"\b(?:torch\.)?(\w*)Tensor\b")
_MANY = re.compile(r"^(?:typing\.|collections\.abc\.)?(list|tuple|sequence|iterable)\[(.*)\]$", re.I)
_OPTIONAL = re.compile(r"^(?:typing\.)?Optional\[(.*)\]$|^(?:typing\.)?Union\[(.*), None(?:Type)?\]$|^(.*) \| None$")
_LITERAL = re.compile(r"\bLiteral\[([^\]]*)\]")

INDICES = re.compile(r"(^|_)(ids?|tokens?|idx|index|indices|labels?|targets?|text)($|_)")
_FRACTION = re.compile(r"threshold|temperature|eps|scale|alpha|beta|gamma|rate|prob|momentum|weight_decay|sigma|ratio")
_FEATURES = re.compile(r"(features?|feats?|embeds?|embeddings?|embs?|logits|hidden|latents?)$")
_USUAL: tuple[tuple[str, Tensor], ...] = (
    (r"(^|_)(lengths?|lens)$", Tensor("int", (BATCH,), LENGTH + 1, 1)),
    (
        r"^(num|n)_(boxes|objects|objs|regions|nodes|points|frames|tokens|words)$",
        Tensor("int", (BATCH,), LENGTH + 1, 1),
    ),
    (r"^(t|time|timesteps?|time_?steps?|noise_levels?)$", Tensor("int", (BATCH,), 10)),
    (r"edge_index|edges$", Tensor("int", (2, 4), BATCH)),
    (r"(^|_)(offsets?)$", Tensor("int", (BATCH,), 1)),
    (r"^(input_values|waveforms?|wavs?|audio|raw_speech)$", Tensor("float", (BATCH, 4000))),
)


def alternatives(name: str, annotation: Any, use: Use, names: dict[str, Any]) -> list[Any]:
    """Values for a parameter, likeliest first; empty where nothing is known of it. `names` are those of the module."""
    text = _text(annotation)
    declared = _from_jaxtyping(annotation, text, use) or _structure(text, annotation, use, names, name)
    if declared is not None:
        return [declared]
    found = list(_used(use, name))
    kind = next(iter(_TENSOR.findall(text)), "")
    if kind in ("Long", "Int"):
        found = [t if t.kind == "int" else t.as_int(8) for t in found if isinstance(t, Tensor)]
    elif kind == "Bool":
        found = [Tensor("bool", t.shape) for t in found if isinstance(t, Tensor)]
    return found


def by_name(name: str, shape: Tensor, use: Use | None = None) -> Any:
    """A value for a parameter of which little but the name is known; `shape` is what the model takes elsewhere."""
    if shape.kind == "float" and _FEATURES.search(name):  # of images and texts, too
        return shape
    if re.search(r"pixel|image|img", name) and len(shape.shape) != 4:
        return Tensor("float", (BATCH, 3, 32, 32))
    if use is not None and use.items > 1 and not use.tensors and not use.methods and use.rank is None:
        return (shape,) * use.items  # unpacked, as a recurrent cell does with its state
    if "mask" in name:
        return Tensor("bool", shape.shape[:2] if shape.kind == "float" and len(shape.shape) == 3 else shape.shape)
    if INDICES.search(name) and shape.kind == "float":
        return shape.as_int(8)
    if _FRACTION.search(name) and not (use is not None and use.methods):
        return 0.5
    return {"training": False, "inplace": False}.get(name, shape)


def _text(annotation: Any) -> str:
    """An annotation as text, without the `Optional` around it."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__qualname__", None) or str(annotation)
    if not isinstance(annotation, (str, type)):
        text = str(annotation)
    found = _OPTIONAL.match(text.strip("'\" "))
    return next((part for part in found.groups() if part), text) if found else text.strip("'\" ")


def _structure(text: str, annotation: Any, use: Use, names: dict[str, Any], name: str) -> Any:
    """A value that an annotation other than a tensor's asks for; None where it asks for none."""
    plain: dict[str, Any] = {"bool": False, "int": 2, "float": 0.5, "str": ""}
    if text in plain:
        return plain[text] if text != "int" or not use.tensors else None
    if re.search(r"torch\.device$|^device$", text):
        return Source("torch.device('cpu')")
    if re.search(r"torch\.dtype$|^dtype$", text):
        return Source("torch.float32")
    literal = _LITERAL.search(text)
    if literal is not None:
        return Source(literal.group(1).split(",")[0].strip())
    many = _MANY.match(text)
    if many is not None and _TENSOR.search(many.group(2)):
        return _several(many.group(1).lower(), many.group(2), use, name)
    return _object(text, annotation, use, names)


def _several(kind: str, inner: str, use: Use, name: str) -> Any:
    """`list[Tensor]`, `tuple[Tensor, Tensor]`."""
    each = inner.split(",")
    count = len(each) if kind == "tuple" and "..." not in inner else max(use.items, 2)
    wanted = list(_used(use.item, name)) if use.item is not None else []
    direct = list(use.tensors)  # of what gets the whole, as a recurrent cell gets its state
    item = next(iter(direct or wanted), Tensor("float", (BATCH, 8)))
    return tuple([item] * count) if kind == "tuple" else [item] * count


def _object(text: str, annotation: Any, use: Use, names: dict[str, Any]) -> Any:
    """A named tuple, dataclass, typed dictionary or enumeration of the user's."""
    found = annotation if isinstance(annotation, type) else names.get(text.rpartition(".")[2])
    if not isinstance(found, type) or issubclass(found, (torch.Tensor, torch.nn.Module)):
        return None
    if issubclass(found, enum.Enum):
        return Source(f"{found.__name__}.{next(iter(found)).name}")
    fields = getattr(found, "__annotations__", {})
    typed = hasattr(found, "__total__") and issubclass(found, dict)
    if not (typed or dataclasses.is_dataclass(found) or (issubclass(found, tuple) and hasattr(found, "_fields"))):
        return None
    inner = use.keys if typed else use.attributes
    optional = use.optional if typed else _with_default(found)
    arguments = {
        field: first(field, kind, inner.get(field, Use()), names)
        for field, kind in fields.items()
        if field not in optional
    }
    return arguments if typed else Call(found.__name__, arguments)


def _with_default(found: type) -> set[str]:
    if not dataclasses.is_dataclass(found):
        return set(getattr(found, "_field_defaults", ()))
    missing = dataclasses.MISSING
    return {f.name for f in dataclasses.fields(found) if (f.default, f.default_factory) != (missing, missing)}


def first(name: str, annotation: Any, use: Use, names: dict[str, Any]) -> Any:
    """One value, whatever is known."""
    return next(iter(alternatives(name, annotation, use, names)), by_name(name, Tensor("float", (BATCH, 8)), use))


def filled(name: str, value: Any, use: Use, names: dict[str, Any]) -> Any:
    """A value of a project's call with what that leaves open in it, as the source shows it."""
    if value is UNKNOWN:
        return first(name, None, use, names)
    if isinstance(value, dict):
        return {key: filled(str(key), item, use.keys.get(str(key), Use()), names) for key, item in value.items()}
    if isinstance(value, Call):
        parts = {n: filled(n, item, use.attributes.get(n, Use()), names) for n, item in value.arguments.items()}
        return Call(value.name, parts)
    if isinstance(value, (list, tuple)):
        each = use.parts if len(use.parts) == len(value) else [("", use.item or Use())] * len(value)
        return type(value)(filled(n, item, part, names) for item, (n, part) in zip(value, each))  # noqa: B905
    return value


def _used(use: Use, name: str) -> Iterator[Any]:
    """What the source shows; what has the sizes that it is refused without comes first."""
    found = list(_shown(use, name))
    if use.sizes and not found:
        rank = max(2, *(axis + 1 if axis >= 0 else -axis for axis in use.sizes))
        shape = Tensor("float", (BATCH, 8)).of_rank(rank) or Tensor("float", (BATCH, 8))
        found = [shape.as_int(8).like(shape.shape) or shape if INDICES.search(name) else shape]
    sized = [_sized(value, use.sizes) for value in found]
    yield from (value for value, made in zip(found, sized) if made is value)  # noqa: B905
    yield from (made for value, made in zip(found, sized) if made is not value)  # noqa: B905


def _sized(value: Any, sizes: dict[int, int]) -> Any:
    """A tensor with these sizes, by dimension; anything else as it is."""
    if not isinstance(value, Tensor):
        return value
    shape = list(value.shape)
    for axis, size in sorted(sizes.items()):
        if -len(shape) <= axis < len(shape):
            shape[axis] = size
        elif axis == len(shape):
            shape.append(size)
    return value if tuple(shape) == value.shape else value.like(tuple(shape)) or value


def _shown(use: Use, name: str) -> Iterator[Any]:
    if use.keys:
        yield {key: first(key, None, inner, {}) for key, inner in use.keys.items() if key not in use.optional}
        return
    if use.attributes:
        fields = {field: first(field, None, inner, {}) for field, inner in use.attributes.items()}
        yield Call("SimpleNamespace", fields)
        return
    if use.calls is not None:
        yield Source("nn.Identity()")
        return
    if use.choices:
        yield use.choices[0]
        return
    usual = next((tensor for pattern, tensor in _USUAL if re.search(pattern, name)), None)
    parts = unpacked(use) if usual is None and not (use.tensors or use.methods) else None
    if parts is not None:
        yield parts
        return
    several = use.item is not None and use.item.tensors and use.items > 1 and not (use.tensors or use.methods)
    if use.iterated and not use.items and use.item is not None and not (use.tensors or use.methods):
        each = next(iter(use.item.tensors), None) or next(_ranked(use.item, name), None)
        if each is not None:
            yield [each] * 2
            return
    if several and use.item is not None and (usual is None or usual.shape[:1] != (use.items,)):
        yield [use.item.tensors[0]] * use.items
        return
    if use.bounds and not (use.tensors or use.methods):
        yield 2
        return
    rank = use.rank or len(use.stated) or None
    fits = [t for t in use.tensors if rank in (None, len(t.shape)) and len(t.shape) >= use.least_rank]
    if use.stated_with_own and fits:
        yield _stated(use, name, usual)
    yield from fits
    if use.stated and not fits:
        yield _stated(use, name, usual)
    elif use.tensors and not fits and (made := use.tensors[0].of_rank(rank or use.least_rank)) is not None:
        yield made
    if usual is not None and not fits:
        yield usual
        if usual.kind == "int" and usual.high > BATCH and re.fullmatch(r"t|time_?steps?", name):
            yield Tensor("float", ())  # the time of a differential equation
    yield from (t for t in use.tensors if t not in fits)
    if use.tensors or usual is not None:
        return
    if "item" in use.methods:
        yield Tensor("float", ())
        return
    yield from _ranked(use, name)


def _stated(use: Use, name: str, usual: Tensor | None) -> Tensor:
    """A tensor of the shape that the text states, with numbers of the kind that layers take, or that its name says."""
    like = next(iter(use.tensors), usual)
    if like is not None:
        return Tensor(like.kind, use.stated, like.high, like.low)
    return Tensor("int" if INDICES.search(name) else "bool" if "mask" in name else "float", use.stated)


def _ranked(use: Use, name: str) -> Iterator[Tensor]:
    """A tensor of the rank that the source shows; none where it shows none."""
    rank = use.rank or (use.least_rank if use.least_rank > 1 or use.least_last else 0)
    if rank == 4:
        yield Tensor("float", (BATCH, 3, 32, 32))
    elif rank:
        made = Tensor("float", (BATCH, 8)).of_rank(rank) or Tensor("float", (BATCH, 8))
        if use.least_last > 1:
            made = made.like((*made.shape[:-1], use.least_last)) or made
        yield made.as_int(8).like(made.shape) or made if INDICES.search(name) else made


def unpacked(use: Use) -> list[Any] | None:
    """Values of what a parameter is unpacked into; None where nothing is known of any."""
    found = [next(iter(alternatives(name, None, part, {})), None) for name, part in use.parts]
    if all(value is None for value in found):
        return None
    like = next((v for v in found if isinstance(v, Tensor) and v.kind == "float"), Tensor("float", (BATCH, 8)))
    made = (by_name(name, like, part) for name, part in use.parts)
    return [other if value is None else value for value, other in zip(found, made)]  # noqa: B905


def _from_jaxtyping(annotation: Any, text: str, use: Use) -> Tensor | None:
    dims, kind = getattr(annotation, "dim_str", None), getattr(annotation, "__name__", "")
    found = _JAXTYPING.search(text)
    if dims is None and found is not None:
        kind, dims = found.groups()
    if dims is None:
        return None
    wanted = next(iter(use.tensors), None)
    return _named_dimensions(kind, dims, wanted)


def _named_dimensions(kind: str, dims: str, wanted: Tensor | None) -> Tensor:
    """`"batch time 64"`: numbers as they are; the last name takes the size that the layers demand, others are small."""
    names = [name.lstrip("#*").split("=")[-1] for name in dims.split() if name != "..."]
    sizes = []
    for position, name in enumerate(names):
        if name.isdigit():
            sizes.append(int(name))
        elif position == len(names) - 1 and wanted is not None and wanted.shape and wanted.kind == "float":
            sizes.append(wanted.shape[-1])
        else:
            sizes.append({"b": BATCH, "batch": BATCH, "n": BATCH}.get(name.lower(), LENGTH))
    if kind.startswith(("Int", "UInt")):
        return Tensor("int", tuple(sizes), wanted.high if wanted is not None and wanted.kind == "int" else 8)
    return Tensor("bool" if kind.startswith("Bool") else "float", tuple(sizes))

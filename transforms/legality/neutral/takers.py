"""What takes a mask or None: attention, as a function and in layers, and which masks it takes for none."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import UNKNOWN
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.dtypes import kinds
from graphmend.transforms.legality.neutral.elements import Element
from graphmend.transforms.legality.neutral.submodules import called_method

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


class TellsError(Exception):
    """Something tells a mask that masks nothing from none; the message says what."""


class Takes(NamedTuple):
    """A parameter that takes a mask or None."""

    name: str
    place: int
    lets: bool
    """Do bools say what is let through, and not what is masked?"""


class _Taker(NamedTuple):
    """A function, or a layer, with such parameters."""

    masks: tuple[Takes, ...]
    causal: dict[str, int]
    """The parameters by which a mask is another one, by their places."""
    dropout: tuple[str, int] | None = None


_FUNCTIONS: dict[str, _Taker] = {
    "torch.nn.functional.scaled_dot_product_attention": _Taker(
        (Takes("attn_mask", 3, True),), {"is_causal": 5}, ("dropout_p", 4)
    ),
    "torch.nn.functional.multi_head_attention_forward": _Taker(
        (Takes("key_padding_mask", 14, False), Takes("attn_mask", 16, False)), {"is_causal": 24}
    ),
}
_DECODER = _Taker(
    (
        Takes("tgt_mask", 2, False), Takes("memory_mask", 3, False),
        Takes("tgt_key_padding_mask", 4, False), Takes("memory_key_padding_mask", 5, False),
    ),
    {"tgt_is_causal": 6, "memory_is_causal": 7},
)  # fmt: skip
_LAYERS: dict[str, _Taker] = {
    "MultiheadAttention": _Taker((Takes("key_padding_mask", 3, False), Takes("attn_mask", 5, False)), {"is_causal": 7}),
    "TransformerEncoderLayer": _Taker(
        (Takes("src_mask", 1, False), Takes("src_key_padding_mask", 2, False)), {"is_causal": 3}
    ),
    "TransformerEncoder": _Taker((Takes("mask", 1, False), Takes("src_key_padding_mask", 2, False)), {"is_causal": 3}),
    "TransformerDecoderLayer": _DECODER,
    "TransformerDecoder": _DECODER,
}
_KERNEL = Difference("rounding", "attention under a mask that masks nothing may be computed by another kernel")


def takes(facts: FunctionFacts, call: ast.Call) -> tuple[Takes, ...]:
    """The parameters of what is called that take a mask or None."""
    taker = _taker(facts, call)
    return taker.masks if taker is not None else ()


def given_for_none(
    facts: FunctionFacts, call: ast.Call, node: ast.expr, one: Takes, element: Element
) -> list[Difference]:
    """What differs where a mask is given in the place of None. Raises where it is known to mask something."""
    taker, found = _taker(facts, call), [_KERNEL]
    if taker is None or not _masks_nothing(facts, node, element, lets=one.lets):
        raise TellsError(f"`{shortened(node)}` masks something in `{shortened(call.func)}`")
    causal = [_argument(call, name, place) for name, place in taker.causal.items()]
    if any(given is not None and constant(given) is not False for given in causal):
        raise TellsError(f"`{shortened(call)}` takes no mask where it is causal")
    dropout = _argument(call, *taker.dropout) if taker.dropout is not None else None
    if dropout is not None and constant(dropout) not in (0, 0.0):
        found.append(Difference("random", "another kernel of attention may draw other random numbers"))
    says = f"a mask that `{shortened(call.func)}` does not take, by shape or dtype, raises where it masks nothing too"
    found.append(Difference("exception", says))
    if element == "nonzero":
        found.append(Difference("dtype", f"`{shortened(node)}` is taken to be of bools"))
    return found


def called_unrecorded(facts: FunctionFacts, call: ast.Call) -> ast.FunctionDef | str | None:
    """What is called, by the text of the class, where the function is not recorded."""
    return called_method(facts, call.func) if facts.value(call.func) is UNKNOWN else None


def _taker(facts: FunctionFacts, call: ast.Call) -> _Taker | None:
    value, made = facts.value(call.func), called_unrecorded(facts, call)
    if isinstance(value, ExternalInstance):
        made = value.cls
    if isinstance(made, str) and made.startswith("torch.nn."):
        return _LAYERS.get(made.rpartition(".")[2])
    return _FUNCTIONS.get(qualified(facts, call.func) or "")


def _argument(call: ast.Call, name: str, place: int) -> ast.expr | None:
    """What a parameter is given; what is unpacked where it may be among that."""
    for keyword in call.keywords:
        if keyword.arg in (name, None):
            return keyword.value
    starred = next((a for a in call.args[: place + 1] if isinstance(a, ast.Starred)), None)
    return starred if starred is not None else call.args[place] if len(call.args) > place else None


def _masks_nothing(facts: FunctionFacts, node: ast.expr, element: Element, *, lets: bool) -> bool:
    """Bools say what is let through, or what is masked; numbers are added."""
    if isinstance(element, bool):
        return element is lets
    may_be_bools = "bool" in kinds(facts, node)
    if element == "nonzero":
        return lets and may_be_bools
    if element == "zero":
        return not (lets and may_be_bools)
    return element == 0

"""What TorchDynamo does not model of objects, measured on torch 2.13: class, operation, break's id.

Each operation of a class was compiled alone on an object from outside the graph; those that are not listed traced, or
raise in plain Python too. Operations are named as in `interpreter.events.Operation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_BYTES = {
    "iterate": "GB0811", "len": "GB6012", "subscript": "GB4880", "store": "GB7786", "repr": "GB2852", "bool": "GB6012",
}  # fmt: skip
_DATE = {"str": "GB0005", "repr": "GB2852", "-": "GB0808"}
_AMOUNT = {
    "str": "GB0005", "repr": "GB2852", "+": "GB0808", "-": "GB0808", "*": "GB0808", "*=": "GB0808", "/": "GB0808",
    "neg": "GB0156", "pos": "GB0156", "abs": "GB0156", "bool": "GB0156",
}  # fmt: skip
_REPEATED = {"*": "GB9458", "*=": "GB9561"}
_COMPARED = {"==": "GB1220", "!=": "GB1220", "<": "GB1220", "<=": "GB1220", ">": "GB1220", ">=": "GB1220"}

UNTRACED: Final[Mapping[str, Mapping[str, str]]] = {
    "array.array": {**_BYTES, **_REPEATED, **_COMPARED, "contains": "GB4411"},
    "builtins.memoryview": {**_BYTES, "contains": "GB0811"},
    "builtins.bytearray": {**_BYTES, **_REPEATED, "contains": "GB4411", "str": "GB0005"},
    "datetime.date": _DATE,
    "datetime.datetime": _DATE,
    "datetime.timedelta": _AMOUNT,
    "decimal.Decimal": _AMOUNT,
    "logging.Logger": {"str": "GB0059", "repr": "GB6053", "==": "GB9648", "!=": "GB9648", "set": "GB0467"},
    "random.Random": {"==": "GB9648", "!=": "GB9648", "set": "GB0467"},
    "threading.Lock": {"repr": "GB2852"},
    "weakref.ref": {"str": "GB0059", "repr": "GB6053"},
    "io.StringIO": {"iterate": "GB0811", "contains": "GB0811"},
    "types.SimpleNamespace": {"repr": "GB2852", "==": "GB1220", "!=": "GB1220", "set": "GB0156"},
    "collections.deque": {"*=": "GB0116"},
    "torch.Tensor.data_ptr": {
        "==": "GB5976",
        "!=": "GB5976",
        "+": "GB0088",
        "-": "GB0088",
        "<": "GB0088",
        ">": "GB0088",
        "%": "GB0088",
    },
    "types.TracebackType": {".tb_lasti": "GB9625"},
    "torch.utils.hooks.RemovableHandle": {"global": "GB0100"},
    "a quantized Tensor": {"load": "GB0064"},
    "a strided nested Tensor": {"load": "GB0016"},
    "an array of texts": {"load": "GB0185"},
    "types.MappingProxyType": {"subscript behind a change": "GB0198"},
    "a mapping proxy with objects as keys": {"load": "GB0204"},
    "ctypes.Structure": {"set": "GB3697", "delete": "GB3241"},
    "ctypes.Union": {"set": "GB3697", "delete": "GB3241"},
    "torch.autograd.function.FunctionCtx": {"delete": "GB0139"},
    "torch.profiler.profile": {"return": "GB0212"},
    "torch.autograd._unsafe_preserve_version_counter": {"return": "GB0209"},
}

#: the `id` of a tensor that the graph computes: an object that has a number, which is not known yet
ID: Final[Mapping[str, str]] = {
    "neg": "GB0755", "pos": "GB7510", "abs": "GB9548", "int": "GB3775", "float": "GB7286", "*": "GB3006",
    "+": "GB0088", "-": "GB0088", "//": "GB0088", "%": "GB0088", "|": "GB0088", "<<": "GB0088", "**": "GB0059",
    "==": "GB9316", "!=": "GB9316", "<": "GB9316", "<=": "GB9316", ">": "GB9316", ">=": "GB9316",
    "str": "GB0059", "repr": "GB6053", "return": "GB4501",
}  # fmt: skip

#: a tensor's method that is used as an object
METHOD: Final[Mapping[str, str]] = {
    "hash": "GB0682", "==": "GB6215", "!=": "GB6215", "isinstance": "GB0175", "type": "GB4841",
}  # fmt: skip

#: a function that is written in the traced one and reads a tensor of it
LOCAL_FUNCTION: Final[Mapping[str, str]] = {"==": "GB4608", "!=": "GB4608", "repr": "GB1584"}

#: an iterator of Python; of those that are returned, what `enumerate` gives
ITERATOR: Final[Mapping[str, str]] = {"repr": "GB6053", "str": "GB0059", "return": "GB8335"}

#: attributes of what is traced as a tensor; a tensor has a `grad_fn` where gradients are wanted
UNTRACED_ATTRIBUTES: Final[Mapping[str, Mapping[str, str]]] = {
    "tensor": {"grad_fn": "GB0104"},
    "ndarray": {"dtype": "GB0157", "flags": "GB0157", "base": "GB0157", "__version__": "GB0159"},
}

"""What layers of torch.nn make of the rank and shape of what they are given, and the tensors that modules hold. The
dtype of what layers make is that of their parameters, or of autocast, and not known.
"""

from __future__ import annotations

import ast

from graphmend.analysis.lattice.evidence import Evidence
from graphmend.analysis.lattice.values import Container, Static, Tensor, Value
from graphmend.analysis.tensors.operations import result

#: one value for each element, in its place
_SAME_SHAPE = frozenset(
    "Identity ReLU ReLU6 GELU SiLU Mish ELU SELU CELU LeakyReLU PReLU Sigmoid LogSigmoid Tanh Softmax LogSoftmax "
    "Softmin Softplus Softsign Hardtanh Hardswish Hardsigmoid Hardshrink Softshrink Tanhshrink Threshold Dropout "
    "Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout RReLU LayerNorm RMSNorm GroupNorm BatchNorm1d "
    "BatchNorm2d BatchNorm3d SyncBatchNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d LocalResponseNorm".split()
)
#: as many dimensions
_SAME_RANK = frozenset(
    "Linear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d AvgPool1d AvgPool2d AvgPool3d "
    "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d Upsample PixelShuffle PixelUnshuffle ConstantPad1d "
    "ConstantPad2d ZeroPad2d ReflectionPad1d ReflectionPad2d ReplicationPad1d ReplicationPad2d".split()
)

#: they give the parameters and buffers of a module
_HOLDS = frozenset("parameters named_parameters buffers named_buffers state_dict".split())


def given_by(layer: str, first: Tensor, node: ast.AST) -> Tensor | None:
    """What a layer of this class gives; None where that is not known."""
    if layer in _SAME_SHAPE:
        return result(first, node, "returns a Tensor", rank=first.rank, shape=first.shape)
    if layer in _SAME_RANK:
        return result(first, node, "returns a Tensor", rank=first.rank)
    if layer == "Embedding" and first.rank is not None:
        return result(first, node, "returns a Tensor", rank=first.rank + 1)
    return None


def held(cls: str, method: str, node: ast.AST) -> Value | None:
    """What a module gives by a method that hands out its parameters and buffers, or as the element of a list of them,
    where `method` is empty; None for any other.
    """
    if method not in _HOLDS and (method or cls != "torch.nn.ParameterList"):
        return None
    return _handed_out(method, node, likely=False)


#: methods that hardly anything but a module has
_OF_MODULES = frozenset("parameters named_parameters named_buffers".split())


def held_by_any(method: str, node: ast.AST) -> Value | None:
    """The same for something of which nothing is known but that it is asked as a module is."""
    return _handed_out(method, node, likely=True) if method in _OF_MODULES else None


def _handed_out(method: str, node: ast.AST, *, likely: bool) -> Value:
    origin = Evidence("is a parameter or a buffer of a module, so a Tensor", node)
    tensor = Tensor(origin, graph_input=True, likely=likely)  # a parameter that learns nothing may hold whole numbers
    if method == "state_dict":
        return Container("dict", of=tensor)
    if not method:
        return tensor
    return Container("generator", of=Container("tuple", (Static("str"), tensor)) if "named" in method else tensor)

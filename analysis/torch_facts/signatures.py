"""Signatures that torch's files do not state, written by hand, each with its reason; in the notation of overloads.py.

Checked against torch 2.13. They replace what the generator found.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_BARE = "a Python function without a return annotation"
_NO_INSTANCES = "a class whose constructor gives instances of another, Tensor"
_TAGGED_BELOW = "the operator that it calls is tagged dynamic_output_shape, the Python function is not"
_COMPOSITE = "calls nonzero; a composite operator carries no tag of its own"
_SIZED = "without output_size the result's length is the sum of the repeats; the tag is on another overload"
_MODES = "the result depends on return_indices, which the constructor takes; False is the default"


def _unique(first: str, order: str) -> str:
    """A flag that is given selects the longer result; a caller leaves out the flags that are constantly False."""
    return (
        f"{first}{order}>T#d|{first}*,return_inverse,{order}>(output=T inverse_indices=T)#d"
        f"|{first}*,return_counts,{order}>(output=T counts=T)#d"
        f"|{first}*,return_inverse,return_counts,{order}>(output=T inverse_indices=T counts=T)#d"
    )


#: qualified name to (overloads, reason)
SIGNATURES: Final[Mapping[str, tuple[str, str]]] = {
    "torch.unique": (_unique("input:,", "sorted=,dim="), _TAGGED_BELOW),
    "torch.unique_consecutive": (_unique("input:,", "dim="), _TAGGED_BELOW),
    "torch.Tensor.unique": (_unique("", "sorted=,dim="), _TAGGED_BELOW),
    "torch.Tensor.unique_consecutive": (_unique("", "dim="), _TAGGED_BELOW),
    "torch.where": ("condition:>L#d|condition:,input~,other~,*,out:=>T#p|condition:,self~,other~>T#p", _COMPOSITE),
    "torch.combinations": ("input:,r=,with_replacement=>T#d", _COMPOSITE),
    "torch.repeat_interleave": (
        "input:,repeats,dim=,*,output_size=>T|repeats:>T#d|input:,repeats:,dim=>T#d|input:,repeats:,dim=,*,output_size>T"
        "|repeats:,*,output_size>T",
        _SIZED,
    ),
    "torch.Tensor.repeat_interleave": (
        "repeats,dim=,*,output_size=>T|repeats:,dim=>T#d|repeats:,dim=,*,output_size>T",
        _SIZED,
    ),
    "torch.nn.functional.one_hot": ("input:>T#d|input:,num_classes>T", "num_classes=-1 is inferred from the values"),
    "torch.ctc_loss": (
        "log_probs:,targets:,input_lengths~,target_lengths~,blank=,reduction=,zero_infinity=>T#d",
        _COMPOSITE,
    ),
    "torch.nn.functional.ctc_loss": (
        "log_probs:,targets:,input_lengths~,target_lengths~,blank=,reduction=,zero_infinity=>T#d",
        _COMPOSITE,
    ),
    "torch.nn.modules.CTCLoss": ("log_probs:,targets:,input_lengths~,target_lengths~>T#d", _COMPOSITE),
    "torch.norm": ("input:,p~=,dim=,keepdim=,out:=,dtype=>T#r", _BARE),
    "torch.Tensor.norm": ("p~=,dim=,keepdim=,dtype=>T#r", _BARE),
    "torch.autograd.Variable": ("data:=,requires_grad=,volatile=>T", _NO_INSTANCES),
    "torch.autograd.variable.Variable": ("data:=,requires_grad=,volatile=>T", _NO_INSTANCES),
    "torch.cdist": ("x1:,x2:,p=,compute_mode=>T", _BARE),
    "torch.tensordot": ("a:,b:,dims~=,out:=>T", "no return annotation on its overloads"),
    "torch.block_diag": ("*tensors:>T", _BARE),
    "torch.chain_matmul": ("*matrices:,out:=>T", _BARE),
    "torch.broadcast_tensors": ("*tensors:>L#v", _BARE),
    "torch.broadcast_shapes": ("*shapes>size", _BARE),
    "torch.atleast_1d": ("input:>T#v|tensors>L#v|input:,*tensors:>L#v", _BARE),
    "torch.atleast_2d": ("input:>T#v|tensors>L#v|input:,*tensors:>L#v", _BARE),
    "torch.atleast_3d": ("input:>T#v|tensors>L#v|input:,*tensors:>L#v", _BARE),
    "torch.sym_int": ("a>int", _BARE),
    "torch.sym_float": ("a>float", _BARE),
    "torch.sym_not": ("a>bool", _BARE),
    "torch.sym_max": ("a,b>number", _BARE),
    "torch.sym_min": ("a,b>number", _BARE),
    "torch.Tensor.index": ("positions,dims>T", "the stub is of another function of that name"),
    "torch.Tensor.__len__": (">int", _BARE),
    "torch.Tensor.backward": ("gradient:=,retain_graph=,create_graph=,inputs~=>none", _BARE),
    "torch.Tensor.dim_order": ("*,ambiguity_check=>size", _BARE),
    "torch.Tensor.is_shared": (">bool", _BARE),
    "torch.Tensor.share_memory_": (">self", _BARE),
    "torch.Tensor.storage_type": (">?", _BARE),
    "torch.nn.modules.MaxPool1d": ("input:>T", _MODES),
    "torch.nn.modules.MaxPool2d": ("input:>T", _MODES),
    "torch.nn.modules.MaxPool3d": ("input:>T", _MODES),
    "torch.nn.modules.AdaptiveMaxPool1d": ("input:>T", _MODES),
    "torch.nn.modules.AdaptiveMaxPool2d": ("input:>T", _MODES),
    "torch.nn.modules.AdaptiveMaxPool3d": ("input:>T", _MODES),
    "torch.nn.modules.FractionalMaxPool2d": ("input:>T", _MODES),
    "torch.nn.modules.FractionalMaxPool3d": ("input:>T", _MODES),
}

"""Which keywords torch's functions take and which methods tensors have, beyond what torch's own files list.

Measured on torch 2.13: the signatures of Python functions against the data, NumPy's names for parameters that the
argument parser of C++ functions takes too, and the attributes of tensors and of torch's own subclasses of Tensor.
"""

from __future__ import annotations

from typing import Final

#: NumPy's names for parameters, which C++ functions take as well
NUMPY_NAMES: Final = {"dim": ("axis",), "keepdim": ("keepdims",), "input": ("x", "a", "x1"), "other": ("x2",)}
#: keywords that some overload may take although none is listed with it
COMMON: Final = frozenset(
    "out names self input generator dtype layout device pin_memory requires_grad memory_format non_blocking".split()
)
#: functions that take more keywords than their signature lists
OPEN: Final = frozenset(
    "compile lu unique unique_consecutive adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d "
    "fractional_max_pool2d fractional_max_pool3d max_pool1d max_pool2d max_pool3d huber_loss l1_loss mse_loss "
    "split".split()
)
#: owners of the functions whose keywords are known
OWNERS: Final = frozenset(
    {"torch", "torch.Tensor", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special"}
)

#: methods of tensors that the data does not list, those of torch's subclasses, and those that other devices add
METHODS: Final = frozenset(
    "cdouble cfloat const_data_ptr ipu is_xla mtia name volatile npu hpu mlu musa gcu is_npu is_hpu vulkan xpu is_xpu "
    "commit_update completed cls_to_become context device_mesh elem fake_device from_dense from_functional from_local "
    "from_tensor full_tensor get_data get_mask get_nested_int is_base_tensor is_sparse_coo item_memo lengths "
    "local_shards local_tensor mark_mutation_hidden_from_autograd materialize meta metadata nested_int_memo "
    "nonzero_memo offsets packed placements prune_dense_static_sort reconcile redistribute remote_shards replace_ "
    "reshard sharding_spec sync to_functional to_local to_tensor trigger_wait unary unique_memo wait".split()
)

#: all that some objects of torch have, by class; what TorchDynamo says of anything else (GB numbers), on instances
ATTRIBUTES: Final = {
    "torch.Generator": frozenset(
        "clone_state device get_state graphsafe_get_state graphsafe_set_state initial_seed manual_seed seed set_offset "
        "get_offset set_state register_generator_state".split()
    ),
    **dict.fromkeys(
        ("torch._C._SDPAParams", "torch.backends.cuda.SDPAParams"),
        frozenset("query key value attn_mask dropout is_causal enable_gqa".split()),
    ),
}
NO_SUCH: Final = {
    "torch.Generator": "GB7685", "torch._C._SDPAParams": "GB0359", "torch.backends.cuda.SDPAParams": "GB0359",
}  # fmt: skip

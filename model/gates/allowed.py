"""Tables: which names, attributes and functions a replacement may use that its original does not use.

What torch has comes from its facts (`analysis.torch_facts`), read off torch 2.13; the sets here take away what a
rewrite of tensor code never needs and what could reach files, code, global state or uninitialised memory.
"""

from __future__ import annotations

from graphmend.analysis.torch_facts import TorchFacts


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


BUILTINS = _set(
    "False True None abs all any bool complex dict divmod enumerate filter float int isinstance len list map max min "
    "pow range reversed round set frozenset slice sorted sum tuple zip Ellipsis NotImplemented "
    "ValueError TypeError IndexError KeyError RuntimeError AssertionError ZeroDivisionError"
)
"""Builtins that compute and do nothing else; exceptions may be read, raising needs the original's `raise`."""

MODULES = _set("torch torch.nn torch.nn.functional torch.linalg torch.fft torch.special torch.nn.utils.rnn math")
"""Modules whose functions may be named through an alias that the file has."""

OWNERS = MODULES - {"torch.nn", "math"}

ASSERTIONS = _set("torch._check torch._check_is_size torch._check_value torch._check_index torch._assert_async")
"""Named with an underscore and still what torch tells users to write for bounds of data-dependent sizes."""

CONSTANTS = _set(
    "float16 float32 float64 bfloat16 half float double int8 int16 int32 int64 uint8 uint16 uint32 uint64 short int "
    "long bool complex64 complex128 cfloat cdouble inf nan pi e strided sparse_coo contiguous_format preserve_format "
    "channels_last channels_last_3d Size device dtype Tensor finfo iinfo"
)
"""Of `torch`: dtypes, layouts, memory formats and types; none has an effect."""

_DENIED_FUNCTIONS = _set(
    # reach files, code or processes
    "add_safe_globals clear_safe_globals compile default_restore_location fork from_file from_numpy frombuffer load "
    "import_ir_module import_ir_module_from_buffer location_tag mkdtemp parse_ir parse_schema parse_type_comment "
    "register_package save wait gather_traceback symbolize_tracebacks get_unsafe_globals_in_checkpoint "
    "get_device_module merge_type_from_type_comment printoptions storage_to_tensor_type "
    # switches of the process
    "autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache fork_rng init_num_threads manual_seed "
    "seed initial_seed get_rng_state set_rng_state use_deterministic_algorithms thread_safe_generator "
    # memory that was never written: equality would be a matter of luck
    "empty empty_like empty_permuted empty_quantized empty_strided "
    # views past what a tensor owns
    "as_strided as_strided_ as_strided_copy as_strided_scatter"
)
_DENIED_METHODS = _set(
    # Python functions for each element, arbitrary classes, hooks
    "apply_ map_ map2_ as_subclass module_load register_hook register_post_accumulate_grad_hook reinforce "
    # memory itself
    "set_ data_ptr storage untyped_storage storage_type storage_offset share_memory_ is_set_to record_stream "
    "as_strided as_strided_ as_strided_scatter resize_ resize_as_ resize_as_sparse_ sparse_resize_ "
    "sparse_resize_and_clear_ resize resize_as new_empty new_empty_strided new pin_memory "
    # ends tracing, or runs the backward pass
    "backward numpy to_mkldnn retain_grad"
)
_DENIED_ATTRIBUTES = _set("data grad grad_fn")

_EXTRA_ATTRIBUTES = _set(
    "values indices eps tiny max min bits resolution smallest_normal "  # of named tuples and of finfo
    "append extend get items keys values"  # of containers
)

_MATH = _set(
    "acos acosh asin asinh atan atan2 atanh cbrt ceil comb copysign cos cosh degrees dist e erf erfc exp exp2 expm1 "
    "fabs factorial floor fmod frexp fsum gamma gcd hypot inf isclose isfinite isinf isnan isqrt lcm ldexp lgamma log "
    "log10 log1p log2 modf nan nextafter perm pi pow prod radians remainder sin sinh sqrt sumprod tan tanh tau "
    "trunc ulp"
)


def function(qualified: str, facts: TorchFacts) -> bool:
    """Whether a replacement may name `torch.where`, `torch.nn.functional.pad`, `math.sqrt` and the like."""
    owner, _, last = qualified.rpartition(".")
    if owner == "math":
        return last in _MATH
    if qualified in ASSERTIONS:
        return True
    if owner not in OWNERS or last.startswith("_"):
        return False
    if owner == "torch" and last in CONSTANTS:
        return True
    if last in _DENIED_FUNCTIONS or last.startswith(("set_", "get_", "is_autocast", "validate_")):
        return False
    return facts.knows(qualified) and facts.refusal(qualified) is None


def member(name: str, facts: TorchFacts) -> bool:
    """Whether a replacement may read this attribute of a value, or call this method of tensors and containers."""
    if name.startswith("_"):
        return False
    if name in _EXTRA_ATTRIBUTES:
        return True
    if name in _DENIED_METHODS or name in _DENIED_ATTRIBUTES:
        return False
    return facts.knows(f"torch.Tensor.{name}") or facts.attribute(name) is not None

"""What each form of each framework compiles: the facts, by qualified name. torch 2.13, accelerate 1.x, transformers 4
and 5, lightning 2, diffusers 0.3x, deepspeed 0.1x.

Everything else about compile sites is what Python's own semantics says: see `calls.py`.
"""

from __future__ import annotations

from typing import NamedTuple


class Compiler(NamedTuple):
    """A function that compiles what it is given."""

    target: tuple[str, ...] = ("model",)
    """The names of the parameter that is compiled, the first one. Without an argument for it, the result compiles."""
    full: tuple[str, ...] = ("fullgraph",)
    """Keywords that make a break an error."""
    only_if: str | None = None
    """A keyword that must be True."""
    takes_target: bool = True
    """Whether the first argument is what is compiled; else the result compiles."""
    gives_back: bool = True
    """Whether the result stands for what was compiled."""
    parts: bool = False
    """Whether the repeated blocks are compiled one by one, and the whole is not."""
    exports: bool = False
    """Whether a program comes of it that stands for itself."""


COMPILERS: dict[str, Compiler] = {
    "torch.compile": Compiler(),
    "torch.compiler.compile": Compiler(),
    "torch._dynamo.optimize": Compiler(full=("nopython",), takes_target=False),
    "torch._dynamo.optimize_assert": Compiler(full=("",), takes_target=False),
    "torch._dynamo.explain": Compiler(("f",)),
    "torch._dynamo.export": Compiler(("f",), ("",), exports=True),
    "torch.export.export": Compiler(("mod",), ("",), only_if="strict", gives_back=False, exports=True),
    "torch.export.export_for_training": Compiler(("mod",), ("",), only_if="strict", gives_back=False, exports=True),
    "accelerate.utils.compile_regions": Compiler(("module",), parts=True),
    "accelerate.utils.other.compile_regions": Compiler(("module",), parts=True),
}

#: what these give back compiles when it is called: where nothing can call it, nothing is compiled
LATE = frozenset({"torch.compile", "torch.compiler.compile"})

#: keywords that switch a compiling function off where they are True
DISABLES = "disable"

#: functions that make TorchDynamo leave something alone
DISABLERS = frozenset({"torch.compiler.disable", "torch._dynamo.disable", "torch._disable_dynamo"})

#: options of trainers' arguments that compile the modules which the trainer is given: keyword -> the values that do not
OPTIONS: dict[str, tuple[object, ...]] = {
    "torch_compile": (False, None, 0),
    "torch_compile_backend": (None, "no", ""),
    "torch_compile_mode": (None, ""),
    "dynamo_backend": (None, "no", "NO", "No"),
}
#: and those whose value is an object that says so
PLUGINS = frozenset({"dynamo_plugin"})
#: the classes of such objects, with the keyword that they need
PLUGIN_CLASSES = {
    "accelerate.utils.TorchDynamoPlugin": "backend",
    "accelerate.utils.dataclasses.TorchDynamoPlugin": "backend",
}
#: a constructor's argument that makes the module
MAKERS = frozenset({"model_init"})
#: a method of whatever has such options that takes modules and gives them back, in order
PREPARES = frozenset({"prepare", "prepare_model", "setup", "setup_module", "unwrap_model"})

#: methods of a torch.nn.Module that call it
CALLS = frozenset({"__call__", "_call_impl", "_wrapped_call_impl"})

#: methods that compile the object that they are called on: a torch.nn.Module, and what stands for one
COMPILES_ITSELF = frozenset({"compile"})
#: those that compile its repeated blocks, by the class attribute that names these
COMPILES_BLOCKS = {"compile_repeated_blocks": "_repeated_blocks"}

#: of a compiled LightningModule these are compiled, not `forward` alone
STEPS = ("training_step", "validation_step", "test_step", "predict_step")
STEP_CLASSES = frozenset({"LightningModule"})

#: classes whose instances hold a module as `module` and call it
WRAPPERS = frozenset({
    "torch.nn.DataParallel", "torch.nn.parallel.DataParallel", "torch.nn.parallel.DistributedDataParallel",
    "torch.nn.parallel.distributed.DistributedDataParallel", "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel",
    "torch.optim.swa_utils.AveragedModel", "apex.parallel.DistributedDataParallel", "ema_pytorch.EMA",
    "timm.utils.ModelEma", "timm.utils.ModelEmaV2", "timm.utils.ModelEmaV3",
})  # fmt: skip
#: by what name the module that an external object holds is read
HELD_AS = frozenset(
    {"module", "model", "_orig_mod", "base_model", "ema_model", "online_model", "_checkpoint_wrapped_module"}
)

#: functions that give back what they are given, changed in place or wrapped so that it behaves alike
GIVE_BACK = frozenset({
    "torch.distributed.fsdp.fully_shard", "torch.distributed._composable.fsdp.fully_shard",
    "torch.distributed._composable.fully_shard", "torch.distributed._composable.replicate",
    "torch.distributed._composable.replicate.replicate", "torch.distributed.tensor.parallel.parallelize_module",
    "torch.distributed.algorithms._checkpoint.checkpoint_wrapper.checkpoint_wrapper",
    "torch.nn.utils.weight_norm", "torch.nn.utils.spectral_norm", "torch.nn.utils.parametrizations.weight_norm",
    "torch.nn.utils.parametrizations.spectral_norm", "torch.nn.utils.parametrizations.orthogonal",
    "torch.nn.SyncBatchNorm.convert_sync_batchnorm", "torch.func.vmap", "torch.vmap", "torch.func.grad",
    "torch.func.grad_and_value", "torch.func.jacrev", "torch.func.jacfwd", "torch.func.functionalize",
    "builtins.staticmethod", "builtins.classmethod", "builtins.property", "functools.lru_cache", "functools.cache",
    "functools.cached_property", "typing.cast", "builtins.iter", "builtins.reversed", "builtins.sorted",
    "builtins.set", "builtins.frozenset", "tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.trange", "rich.progress.track",
    "ray.put", "ray.get", "torch.jit.ignore", "torch.jit.unused", "torch.compiler.allow_in_graph",
})  # fmt: skip

#: calls that make a decorator which changes nothing about what runs
TRANSPARENT = frozenset({
    "torch.no_grad", "torch.inference_mode", "torch.enable_grad", "torch.set_grad_enabled", "torch.autocast",
    "torch.amp.autocast", "torch.cuda.amp.autocast", "torch.cuda.amp.custom_fwd", "torch.cuda.amp.custom_bwd",
    "functools.wraps", "functools.lru_cache", "contextlib.nullcontext", "torch.profiler.record_function",
    "dataclasses.dataclass",
})  # fmt: skip

#: decorators of functions whose one `yield` stands for the body of a `with` statement
CONTEXT_MAKERS = frozenset({"contextlib.contextmanager", "contextlib.asynccontextmanager"})

COPIES = frozenset({"copy.deepcopy", "copy.copy", "torch.clone"})

#: methods of modules that give back the module
CHAINED = frozenset({
    "to", "cuda", "cpu", "xpu", "ipu", "hpu", "mtia", "npu", "eval", "train", "half", "float", "double", "bfloat16",
    "type", "requires_grad_", "share_memory", "to_empty", "apply", "_apply", "merge_and_unload",
})  # fmt: skip
#: methods that register what runs before or behind `forward`
HOOKS = frozenset({"register_forward_hook", "register_forward_pre_hook"})

#: classes of torch whose instances are sequences and mappings of modules
SEQUENCES = frozenset({"torch.nn.Sequential", "torch.nn.ModuleList"})
MAPPINGS = frozenset({"torch.nn.ModuleDict"})

#: bases by which the members of an enumeration are strings or numbers themselves
PLAIN_VALUES = frozenset({"builtins.str", "builtins.int", "enum.StrEnum", "enum.IntEnum", "enum.IntFlag"})

#: the oldest Python that a supported torch runs on
OLDEST_PYTHON = (3, 10)

#: calls that run a function with arguments of their own first: how many
STARTERS = {"torch.multiprocessing.spawn": 1, "torch.multiprocessing.start_processes": 1}
STARTING_CLASSES = frozenset({"threading.Thread", "multiprocessing.Process", "torch.multiprocessing.Process"})

#: words without one of which no text compiles anything
WORDS = (*OPTIONS, *PLUGINS, *COMPILES_BLOCKS, "compile_regions", "TorchDynamoPlugin")

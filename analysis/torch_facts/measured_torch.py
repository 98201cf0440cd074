"""What Dynamo really does with functions, methods and modules of torch, measured on torch 2.13; see measured.py."""

from __future__ import annotations

from typing import Final

#: classes whose instances Dynamo does not take in: reading one from a name, an attribute or an element ends the graph,
#: and the frame is given up
UNTAKEN: Final = frozenset(
    "torch.nn.LSTM torch.nn.GRU torch.nn.RNN torch.nn.RNNBase torch.nn.modules.rnn.LSTM torch.nn.modules.rnn.GRU "
    "torch.nn.modules.rnn.RNN torch.nn.modules.rnn.RNNBase torch.nn.modules.LSTM torch.nn.modules.GRU "
    "torch.nn.modules.RNN".split()
)

_SCHEDULERS = (
    "ChainedScheduler ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts CyclicLR ExponentialLR LambdaLR "
    "LinearLR MultiStepLR MultiplicativeLR OneCycleLR PolynomialLR ReduceLROnPlateau SequentialLR StepLR"
)
#: a scheduler's own methods; they inherit the first and the last from `LRScheduler`
_OF_SCHEDULERS = " ".join(
    f"torch.optim.lr_scheduler.{cls}.{name}"
    for cls in _SCHEDULERS.split()
    for name in ("get_last_lr", "get_lr", "state_dict")
)
#: calls that end the graph
BREAKS: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "GB0007",
        "a C function that Dynamo neither folds nor replaces, or a function that its trace rules refuse",
        "torch._dynamo.reset torch.autograd.backward torch.backends.mkldnn.is_available "
        "torch.compiler.cudagraph_mark_step_begin torch.compiler.reset torch.cuda.manual_seed "
        "torch.cuda.manual_seed_all torch.from_dlpack torch.get_rng_state torch.hub.get_dir torch.manual_seed "
        "torch.mps.is_available torch.nn.utils.rnn.pack_padded_sequence torch.nn.utils.rnn.pad_packed_sequence "
        "torch.autograd.Variable torch.autograd.variable.Variable torch.optim.Optimizer.step torch.random.manual_seed "
        "torch.resize_as_ torch.save torch.set_num_threads torch.set_rng_state torch.sparse_coo_tensor "
        "torch.thread_safe_generator torch.typename "
        "torch.cpu._is_avx2_supported torch.jit.fork torch.jit.isinstance torch.jit.script torch.jit.wait "
        "torch.utils.data.default_collate torch.utils.swap_tensors "
        "torch.utils.data.get_worker_info torch.utils.dlpack.to_dlpack",
    ),
    (
        "GB0007",
        "a Python function that reaches such a C function",
        "torch.load torch.nn.utils.rnn.pack_sequence torch.random.get_rng_state",
    ),
    (
        "GB0008",
        "a function or method that is skipped",
        "torch.amp.GradScaler.get_scale torch.amp.GradScaler.scale torch.autograd.profiler.emit_nvtx "
        "torch.optim.Optimizer.zero_grad torch.optim.lr_scheduler.LRScheduler.get_last_lr "
        "torch.optim.lr_scheduler.LRScheduler.step "
        "torch.ao.quantization.FakeQuantize torch.ao.quantization.HistogramObserver "
        "torch.ao.quantization.MinMaxObserver torch.ao.quantization.MovingAverageMinMaxObserver "
        "torch.ao.quantization.MovingAveragePerChannelMinMaxObserver torch.ao.quantization.PerChannelMinMaxObserver "
        "torch.quasirandom.SobolEngine torch.utils.data.ConcatDataset torch.utils.data.DataLoader "
        "torch.utils.data.Subset torch.utils.data.TensorDataset " + _OF_SCHEDULERS,
    ),
    (
        "GB0008",
        "reaches a method that is skipped",
        "torch.autograd.detect_anomaly torch.autograd.graph.save_on_cpu torch.autograd.graph.saved_tensors_hooks "
        "torch.autograd.set_detect_anomaly torch.optim.SGD",
    ),
    ("GB0014", "a recurrent network", "torch.nn.GRU.forward torch.nn.LSTM.forward torch.nn.RNN.forward"),
    (
        "GB0015",
        "a sparse tensor",
        "torch.Tensor.coalesce torch.Tensor.indices torch.sparse.mm torch.sparse.softmax torch.sparse.sum",
    ),
    ("GB0013", "a handle of a hook that was registered elsewhere", "torch.utils.hooks.RemovableHandle.remove"),
    (
        "GB0017",
        "an operator that Dynamo makes itself",
        "torch._higher_order_ops.invoke_subgraph.invoke_subgraph torch._higher_order_ops.invoke_subgraph",
    ),
    (
        "GB4695",
        "a module that is compiled as TorchScript",
        "torch.jit.ScriptModule.__call__ torch.jit.ScriptModule.forward",
    ),
    ("GB0083", "a module with a backward hook", "torch.nn.Module.with_backward_hook"),
    ("GB0306", "an operator that Dynamo does not know", "torch._ops.HigherOrderOperator.__call__"),
    ("GB0025", "asks for a graph break", "torch._dynamo.graph_break"),
    ("GB0030", "asks for a graph break", "torch._dynamo.comptime.comptime.graph_break"),
    ("GB0129", "changes a sparse tensor's size", "torch.Tensor.sparse_resize_"),
    ("GB0130", "changes a sparse tensor's size", "torch.Tensor.sparse_resize_and_clear_"),
    ("GB0146", "a method of events that Dynamo does not model", "torch.Event.elapsed_time torch.Event.ipc_handle"),
    (
        "GB0165",
        "a method of autograd's engine",
        "torch.autograd.Variable._execution_engine.is_checkpoint_valid "
        "torch.autograd.variable.Variable._execution_engine.is_checkpoint_valid",
    ),
    (
        "GB0166",
        "a callback of autograd's engine",
        "torch.autograd.Variable._execution_engine.queue_callback "
        "torch.autograd.variable.Variable._execution_engine.queue_callback",
    ),
    (
        "GB1750",
        "point-to-point communication, which Dynamo compiles on demand only",
        "torch.distributed.P2POp",
    ),
    (
        "GB2696",
        "point-to-point communication, which Dynamo compiles on demand only",
        "torch.distributed.irecv torch.distributed.isend",
    ),
    (
        "GB9300",
        "point-to-point communication, which Dynamo compiles on demand only",
        "torch.distributed.batch_isend_irecv",
    ),
    (
        "GB0033",
        "hands a Python number or bool made from a tensor's values out of the graph",
        "torch.Tensor.allclose torch.Tensor.corrcoef torch.Tensor.cov torch.Tensor.equal torch.Tensor.is_nonzero "
        "torch.allclose torch.corrcoef torch.cov torch.equal torch.is_nonzero torch.nn.functional.gaussian_nll_loss",
    ),
    (
        "GB0036",
        "the shape of the result depends on values",
        "torch.Tensor.argwhere torch.Tensor.bincount torch.Tensor.masked_select torch.Tensor.nonzero "
        "torch.Tensor.unique torch.argwhere torch.bincount torch.combinations torch.linalg.lstsq torch.masked_select "
        "torch.nn.functional.ctc_loss torch.nonzero torch.unique torch.unique_consecutive",
    ),
    ("GB0045", "a query about inference mode", "torch.Tensor.is_inference"),
    ("GB0046", "a query about inference mode", "torch.is_inference_mode_enabled"),
    (
        "GB0055",
        "an argument that the graph cannot hold",
        "torch.Tensor.apply_ torch.Tensor.map_ torch.Tensor.map2_ torch.autograd.functional.hessian "
        "torch.autograd.functional.hvp torch.autograd.functional.jacobian torch.autograd.functional.jvp "
        "torch.autograd.functional.vhp torch.autograd.functional.vjp",
    ),
    ("GB0059", "a builtin that is not traced", "torch.Tensor.__complex__ torch.Tensor.__str__ torch.nn.Module.__dir__"),
    (
        "GB0059",
        "asks for the base classes of a class, which is not traced",
        "torch.distributions.kl_divergence torch.distributions.kl.kl_divergence",
    ),
    ("GB0090", "a strided nested tensor", "torch.nested.as_nested_tensor torch.nested.nested_tensor"),
    ("GB0098", "marked with `torch.compiler.disable`", "torch.jit.trace"),
    ("GB0104", "reads the autograd graph", "torch.Tensor.grad_fn"),
    ("GB0107", "not functionalized", "torch.Tensor.random_"),
    (
        "GB4315",
        "takes the memory of a tensor, which a traced one has none of",
        "torch.Tensor.__array__ torch.Tensor.__dlpack__ torch.Tensor.to_mkldnn torch.quantize_per_channel",
    ),
    ("GB0108", "keeps a gradient of an intermediate result", "torch.Tensor.retain_grad"),
    ("GB0109", "a list of numbers other than integers", "torch.Tensor.tolist"),
    ("GB0116", "constructs a class with a metaclass or `__new__` that is not traced", "torch.fx.symbolic_trace"),
    ("GB0117", "moves storage to shared memory", "torch.Tensor.share_memory_ torch.nn.Module.share_memory"),
    ("GB0123", "runs the backward pass", "torch.Tensor.backward"),
    (
        "GB0124",
        "a Python number made from a tensor",
        "torch.Tensor.__bool__ torch.Tensor.__contains__ torch.Tensor.__float__ torch.Tensor.__index__ "
        "torch.Tensor.__int__ torch.Tensor.item",
    ),
    ("GB0124", "makes a Python number from a tensor", "torch.nn.init.trunc_normal_"),
    ("GB0125", "asks an input of the graph for gradients", "torch.nn.Module.requires_grad_"),
    ("GB0126", "resizes storage", "torch.Tensor.resize_"),
    ("GB0127", "resizes storage", "torch.Tensor.resize_as_"),
    ("GB0142", "enters a lock", "transformers.utils.logging.get_logger"),
    ("GB0170", "branches on a tensor inside", "torch.testing.assert_close"),
    (
        "GB0208",
        "an operation whose Python result cannot stand in a graph",
        "torch.Tensor.__reduce_ex__ torch.Tensor.dense_dim torch.Tensor.is_conj torch.Tensor.is_distributed "
        "torch.Tensor.is_neg torch.Tensor.is_pinned torch.Tensor.is_same_size torch.Tensor.is_set_to "
        "torch.Tensor.is_shared torch.Tensor.is_signed torch.Tensor.sparse_dim torch.Tensor.storage "
        "torch.Tensor.storage_offset torch.backends.cuda.flash_sdp_enabled torch.backends.cudnn.is_available "
        "torch.backends.openmp.is_available torch.can_cast torch.cuda.device_count torch.cuda.max_memory_allocated "
        "torch.cuda.memory_allocated torch.cuda.memory_reserved torch.get_autocast_cpu_dtype torch.get_default_device "
        "torch.get_float32_matmul_precision torch.get_num_interop_threads torch.get_num_threads torch.initial_seed "
        "torch.is_anomaly_check_nan_enabled torch.is_anomaly_enabled torch.is_inference torch.is_same_size "
        "torch.is_storage torch.result_type torch._C._is_tracing",
    ),
    (
        "GB0208",
        "reaches an operation whose Python result cannot stand in a graph",
        "torch.__config__.show torch.backends.mps.is_available torch.nn.Module.load_state_dict",
    ),
    (
        "GB0264",
        "constructs a parameter",
        "torch.func.stack_module_state torch.nn.Linear torch.nn.utils.skip_init torch.nn.utils.weight_norm",
    ),
    (
        "GB0264",
        "constructs parameters",
        "torch.nn.BatchNorm1d torch.nn.BatchNorm2d torch.nn.BatchNorm3d torch.nn.Bilinear torch.nn.Conv1d "
        "torch.nn.Conv2d torch.nn.Conv3d torch.nn.ConvTranspose1d torch.nn.ConvTranspose2d torch.nn.ConvTranspose3d "
        "torch.nn.Embedding torch.nn.EmbeddingBag torch.nn.GRU torch.nn.GRUCell torch.nn.GroupNorm torch.nn.LSTM "
        "torch.nn.LSTMCell torch.nn.LayerNorm torch.nn.LazyLinear torch.nn.MultiheadAttention torch.nn.PReLU "
        "torch.nn.RMSNorm torch.nn.RNN torch.nn.RNNCell torch.nn.Transformer torch.nn.TransformerDecoderLayer "
        "torch.nn.TransformerEncoderLayer",
    ),
    (
        "GB0264",
        "replaces parameters by ones of another dtype",
        "torch.nn.Module.bfloat16 torch.nn.Module.double torch.nn.Module.half torch.nn.Module.type",
    ),
    (
        "GB0277",
        "makes a sparse tensor",
        "torch.Tensor.to_sparse torch.Tensor.to_sparse_bsc torch.Tensor.to_sparse_bsr torch.Tensor.to_sparse_coo "
        "torch.Tensor.to_sparse_csc torch.Tensor.to_sparse_csr",
    ),
    ("GB0363", "constructs a generator of random numbers", "torch.Generator"),
    ("GB0374", "makes a sparse tensor", "torch.sparse_csr_tensor"),
    (
        "GB0467",
        "writes an attribute that is not traced",
        "torch.nn.Module.register_forward_hook torch.nn.Module.register_forward_pre_hook "
        "torch.nn.Module.register_full_backward_hook",
    ),
    ("GB0569", "a tensor's `repr`", "torch.Tensor.__repr__"),
    (
        "GB7650",
        "sets the state of a generator of random numbers",
        "torch.Generator.get_state torch.Generator.initial_seed torch.Generator.manual_seed torch.Generator.seed "
        "torch.Generator.set_state torch.default_generator.get_state torch.default_generator.initial_seed "
        "torch.default_generator.manual_seed torch.default_generator.seed torch.default_generator.set_state",
    ),
    ("GB9186", "differentiates inside the region", "torch.autograd.grad"),
)

#: calls that trace, although a rule would have them refused or one would guess so
TRACED: Final = (
    "torch.DisableTorchFunction torch.DisableTorchFunctionSubclass torch.FloatTensor torch.LongTensor torch.Size "
    "torch.Tensor torch._C.DisableTorchFunction torch._C.DisableTorchFunctionSubclass torch._assert_async "
    "torch._check torch._dynamo.is_compiling torch._dynamo.mark_static torch.accelerator.current_accelerator "
    "torch.accelerator.is_available torch.amp.autocast torch.are_deterministic_algorithms_enabled torch.as_tensor "
    "torch.atleast_2d torch.autocast torch.autograd.forward_ad.dual_level torch.autograd.profiler.record_function "
    "torch.backends.cudnn.version torch.bernoulli torch.block_diag torch.broadcast_shapes torch.broadcast_tensors "
    "torch.bucketize torch.cartesian_prod torch.cdist torch.chunk torch.compile torch.compiler.is_compiling "
    "torch.compiler.is_dynamo_compiling torch.compiler.is_exporting torch.complex torch.cond torch.cuda.amp.autocast "
    "torch.cuda.empty_cache torch.cuda.is_available torch.device torch.distributed.is_available "
    "torch.distributed.is_initialized torch.einsum torch.empty torch.enable_grad "
    "torch.fake_quantize_per_tensor_affine torch.from_numpy torch.func.functional_call torch.func.grad "
    "torch.func.jacrev torch.func.vmap torch.get_autocast_dtype torch.get_autocast_gpu_dtype torch.get_default_dtype "
    "torch.get_device_module torch.histc torch.histogram torch.inference_mode torch.is_autocast_cpu_enabled "
    "torch.is_autocast_enabled torch.is_complex torch.is_floating_point torch.is_grad_enabled torch.is_tensor "
    "torch.isin torch.jit.annotate torch.jit.is_scripting torch.jit.is_tracing torch.linalg.cholesky "
    "torch.linalg.eigvals torch.linalg.matrix_rank torch.linalg.norm torch.linalg.svd torch.max torch.meshgrid "
    "torch.multinomial torch.nn.Buffer torch.nn.CrossEntropyLoss torch.nn.Dropout torch.nn.Flatten torch.nn.Identity "
    "torch.nn.Module.add_module torch.nn.Module.apply torch.nn.Module.buffers torch.nn.Module.children "
    "torch.nn.Module.compile torch.nn.Module.cpu torch.nn.Module.eval torch.nn.Module.extra_repr "
    "torch.nn.Module.forward torch.nn.Module.get_parameter torch.nn.Module.get_submodule torch.nn.Module.modules "
    "torch.nn.Module.named_children torch.nn.Module.named_modules torch.nn.Module.named_parameters "
    "torch.nn.Module.parameters torch.nn.Module.register_buffer torch.nn.Module.register_parameter "
    "torch.nn.Module.state_dict torch.nn.Module.to torch.nn.Module.train torch.nn.Module.zero_grad "
    "torch.nn.ModuleDict torch.nn.ModuleList torch.nn.Parameter torch.nn.ReLU torch.nn.Sequential torch.nn.Softmax "
    "torch.nn.Upsample torch.nn.functional.cross_entropy torch.nn.functional.dropout torch.nn.functional.embedding "
    "torch.nn.functional.grid_sample torch.nn.functional.gumbel_softmax torch.nn.functional.interpolate "
    "torch.nn.functional.normalize torch.nn.functional.pad torch.nn.init.calculate_gain torch.nn.init.constant_ "
    "torch.nn.init.kaiming_normal_ torch.nn.init.normal_ torch.nn.init.xavier_uniform_ torch.nn.init.zeros_ "
    "torch.nn.utils.clip_grad_norm_ torch.nn.utils.clip_grad_value_ torch.nn.utils.get_total_norm "
    "torch.nn.utils.parameters_to_vector torch.nn.utils.parametrize.is_parametrized torch.nn.utils.rnn.pad_sequence "
    "torch.nn.utils.vector_to_parameters torch.no_grad torch.norm torch.normal torch.numel "
    "torch.overrides.has_torch_function torch.overrides.is_tensor_like torch.pca_lowrank torch.poisson "
    "torch.profiler.profile torch.profiler.record_function torch.promote_types torch.quantize_per_tensor "
    "torch.random.seed torch.randperm torch.scalar_tensor torch.seed torch.set_default_dtype "
    "torch.set_float32_matmul_precision torch.set_grad_enabled torch.set_printoptions torch.sort torch.split "
    "torch.stft torch.svd_lowrank torch.sym_int torch.sym_max torch.tensor torch.tensor_split torch.topk "
    "torch.tril_indices torch.use_deterministic_algorithms torch.utils._pytree.tree_flatten "
    "torch.utils._pytree.tree_map torch.utils.checkpoint.checkpoint torch.view_as_complex torch.vmap "
    "torch.xpu.is_available "
)

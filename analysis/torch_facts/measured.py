"""What Dynamo really does with a call, measured; torch's files do not say it, or say otherwise.

Measured on torch 2.13 (CPU, Python 3.11): a function that does nothing else was compiled for every name here, and
Dynamo's own break id was taken down. An entry is (break id, reason, qualified names); methods stand under their class.
What a call does with some arguments only stands in `BY_ARGUMENT`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: calls that end the graph
BREAKS: Final[tuple[tuple[str, str, str], ...]] = (
    ("GB0001", "makes a tensor subclass", "torch.Tensor.as_subclass"),
    (
        "GB0007",
        "a C function that Dynamo neither folds nor replaces, or a function that its trace rules refuse",
        "abc.get_cache_token atexit.register binascii.crc32 binascii.hexlify bisect.bisect bisect.bisect_left "
        "bisect.bisect_right bisect.insort bisect.insort_left builtins.__import__ cmath.exp cmath.phase cmath.sqrt "
        "codecs.encode codecs.lookup contextvars.copy_context csv.reader csv.writer ctypes.sizeof decimal.getcontext "
        "functools.cmp_to_key gc.collect gc.disable gc.enable gc.freeze gc.get_objects gc.isenabled hashlib.md5 "
        "hashlib.sha1 hashlib.sha256 heapq.heapify heapq.heappop heapq.heappush heapq.heappushpop heapq.heapreplace "
        "importlib.import_module importlib.invalidate_caches importlib.reload inspect.getfile linecache.getline "
        "numpy.testing.assert_allclose os.access os.cpu_count os.getcwd os.getloadavg os.getpgid os.getpid os.getppid "
        "os.getuid os.kill os.listdir os.putenv os.scandir os.sched_getaffinity os.stat os.system os.times os.umask "
        "os.uname os.urandom pickle.dumps pickle.loads random.betavariate random.choice random.choices "
        "random.expovariate random.gauss random.getrandbits random.getstate random.lognormvariate "
        "random.normalvariate random.paretovariate random.randbytes random.random random.sample random.seed "
        "random.setstate random.shuffle random.triangular random.vonmisesvariate re.finditer secrets.choice "
        "signal.alarm socket.gethostname sqlite3.connect stat.S_ISDIR struct.calcsize struct.iter_unpack "
        "struct.unpack_from sys._getframe sys.call_tracing sys.getdefaultencoding sys.getrefcount sys.getsizeof "
        "sys.getswitchinterval sys.gettrace sys.setrecursionlimit sys.settrace threading.Lock threading.get_ident "
        "threading.get_native_id time.clock_gettime time.ctime time.gmtime time.localtime time.monotonic "
        "time.perf_counter time.perf_counter_ns time.process_time time.sleep time.strftime time.thread_time time.time "
        "time.time_ns timeit.default_timer torch._dynamo.reset torch.autograd.backward "
        "torch.backends.mkldnn.is_available torch.compiler.cudagraph_mark_step_begin torch.compiler.reset "
        "torch.cuda.manual_seed torch.cuda.manual_seed_all torch.from_dlpack torch.get_rng_state torch.hub.get_dir "
        "torch.manual_seed torch.mps.is_available torch.nn.utils.rnn.pack_padded_sequence "
        "torch.nn.utils.rnn.pad_packed_sequence torch.optim.Optimizer.step torch.random.manual_seed torch.resize_as_ "
        "torch.save torch.set_num_threads torch.set_rng_state torch.sparse_coo_tensor torch.typename "
        "torch.utils.data.default_collate torch.utils.data.get_worker_info torch.utils.dlpack.to_dlpack "
        "unicodedata.category unicodedata.normalize warnings.warn weakref.proxy zlib.adler32 zlib.compress zlib.crc32 "
        "zlib.decompress",
    ),
    (
        "GB0007",
        "a Python function that reaches such a C function",
        "asyncio.new_event_loop base64.b64decode base64.b64encode concurrent.futures.ThreadPoolExecutor "
        "getpass.getuser glob.glob gzip.compress hashlib.new heapq.nlargest heapq.nsmallest inspect.currentframe "
        "inspect.stack locale.getlocale multiprocessing.Queue multiprocessing.Value multiprocessing.cpu_count "
        "os.environ.__setitem__ os.environ.setdefault os.get_exec_path os.makedirs os.path.abspath os.path.exists "
        "os.path.getmtime os.path.getsize os.path.isdir os.path.isfile os.path.islink os.path.lexists "
        "os.path.normpath os.path.realpath os.path.relpath os.path.samefile os.walk pathlib.Path.cwd "
        "pathlib.Path.exists pathlib.Path.is_file pathlib.Path.iterdir pathlib.Path.mkdir pathlib.Path.read_text "
        "queue.PriorityQueue queue.Queue shutil.copy shutil.disk_usage shutil.rmtree shutil.which signal.getsignal "
        "signal.signal subprocess.check_output subprocess.run tempfile.TemporaryDirectory tempfile.mkdtemp "
        "tempfile.mkstemp threading.Event threading.Semaphore threading.Thread threading.Timer "
        "threading.current_thread torch.nn.utils.rnn.pack_sequence tqdm.auto.tqdm tqdm.tqdm tqdm.trange "
        "traceback.extract_stack traceback.format_stack traceback.print_stack typing.NamedTuple typing.NewType "
        "typing.TypeVar uuid.uuid1 uuid.uuid4 warnings.filterwarnings warnings.formatwarning warnings.resetwarnings "
        "warnings.showwarning warnings.simplefilter",
    ),
    (
        "GB0008",
        "a Python function that is skipped, or wrapped by `torch.compiler.disable`",
        "abc.ABC.register torch.optim.Optimizer.zero_grad torch.optim.lr_scheduler.LRScheduler.get_last_lr "
        "torch.optim.lr_scheduler.LRScheduler.step",
    ),
    (
        "GB0008",
        "reaches a method that is skipped",
        "secrets.randbelow secrets.token_bytes secrets.token_hex torch.autograd.detect_anomaly "
        "torch.autograd.graph.save_on_cpu torch.autograd.graph.saved_tensors_hooks torch.autograd.set_detect_anomaly "
        "torch.optim.SGD tqdm.tqdm.write",
    ),
    (
        "GB0015",
        "a sparse tensor",
        "torch.Tensor.coalesce torch.Tensor.indices torch.Tensor.to_dense torch.sparse.mm torch.sparse.softmax "
        "torch.sparse.sum",
    ),
    ("GB0025", "asks for a graph break", "torch._dynamo.graph_break"),
    (
        "GB0033",
        "hands a Python number or bool made from a tensor's values out of the graph",
        "numpy.allclose numpy.array_equal numpy.corrcoef numpy.cov numpy.ndarray.item numpy.pad numpy.random.choice "
        "torch.Tensor.allclose torch.Tensor.equal torch.Tensor.is_nonzero torch.allclose torch.equal torch.is_nonzero",
    ),
    (
        "GB0036",
        "the shape of the result depends on values",
        "numpy.argwhere numpy.bincount numpy.flatnonzero numpy.nonzero numpy.unique torch.Tensor.argwhere "
        "torch.Tensor.bincount torch.Tensor.masked_select torch.Tensor.nonzero torch.Tensor.unique torch.argwhere "
        "torch.bincount torch.combinations torch.linalg.lstsq torch.masked_select torch.nn.functional.ctc_loss "
        "torch.nonzero torch.unique torch.unique_consecutive",
    ),
    ("GB0045", "a query about inference mode", "torch.Tensor.is_inference"),
    ("GB0046", "a query about inference mode", "torch.is_inference_mode_enabled"),
    (
        "GB0055",
        "an argument that the graph cannot hold",
        "torch.Tensor.apply_ torch.Tensor.map_ torch.autograd.functional.jacobian",
    ),
    (
        "GB0059",
        "a builtin that is not traced",
        "builtins.bytearray builtins.bytes builtins.classmethod builtins.compile builtins.dir builtins.exec "
        "builtins.globals builtins.memoryview builtins.object builtins.open builtins.print builtins.property "
        "builtins.staticmethod io.open operator.indexOf torch.Tensor.__complex__ torch.Tensor.__str__",
    ),
    (
        "GB0059",
        "reaches a builtin that is not traced",
        "ast.literal_eval ast.parse configparser.ConfigParser fnmatch.filter fnmatch.fnmatch statistics.mode "
        "tempfile.NamedTemporaryFile traceback.print_exc zipfile.is_zipfile",
    ),
    ("GB0082", "a coroutine", "asyncio.run asyncio.sleep"),
    ("GB0090", "a strided nested tensor", "torch.nested.as_nested_tensor torch.nested.nested_tensor"),
    ("GB0098", "marked with `torch.compiler.disable`", "torch.jit.trace"),
    ("GB0107", "not functionalized", "torch.Tensor.random_"),
    ("GB0109", "a list of numbers other than integers", "numpy.ndarray.tolist torch.Tensor.tolist"),
    (
        "GB0116",
        "constructs a class with a metaclass or `__new__` that is not traced",
        "enum.auto torch.fx.symbolic_trace",
    ),
    ("GB0117", "moves storage to shared memory", "torch.Tensor.share_memory_"),
    ("GB0123", "runs the backward pass", "torch.Tensor.backward"),
    (
        "GB0124",
        "a Python number made from a tensor",
        "torch.Tensor.__bool__ torch.Tensor.__contains__ torch.Tensor.__float__ torch.Tensor.__index__ "
        "torch.Tensor.__int__ torch.Tensor.item",
    ),
    ("GB0124", "makes a Python number from a tensor", "torch.nn.init.trunc_normal_"),
    ("GB0126", "resizes storage", "torch.Tensor.resize_"),
    ("GB0127", "resizes storage", "torch.Tensor.resize_as_"),
    ("GB0134", "an iterator that is not traced", "statistics.mean statistics.stdev statistics.variance"),
    (
        "GB0142",
        "enters a lock",
        "queue.Queue.empty queue.Queue.put queue.Queue.qsize threading.Event.set threading.active_count "
        "threading.enumerate",
    ),
    (
        "GB0147",
        "constructs an object of a C type",
        "array.array contextvars.ContextVar itertools.combinations_with_replacement types.MethodType datetime.date datetime.datetime datetime.timedelta decimal.Decimal "
        "socket.socket struct.Struct threading.local types.GenericAlias types.ModuleType types.SimpleNamespace "
        "xml.etree.ElementTree.Element",
    ),
    ("GB0147", "constructs an object of a C type", "calendar.monthrange"),
    ("GB0150", "reads an attribute of an exception", "traceback.format_exception"),
    (
        "GB0156",
        "a method of an object of a C type",
        "array.array.append contextvars.ContextVar.get contextvars.ContextVar.set datetime.date.today "
        "datetime.datetime.isoformat datetime.datetime.now datetime.datetime.strftime datetime.datetime.utcnow "
        "datetime.timedelta.total_seconds io.StringIO.getvalue io.StringIO.write "
        "numpy.lib.stride_tricks.sliding_window_view random.Random.choice random.Random.gauss random.Random.sample "
        "random.Random.shuffle struct.Struct.pack sys.stderr.write sys.stdout.flush sys.stdout.isatty "
        "sys.stdout.write",
    ),
    (
        "GB0156",
        "reaches a method or the constructor of a C type",
        "argparse.ArgumentParser bz2.compress functools.lru_cache cProfile.Profile concurrent.futures.Future ctypes.addressof "
        "ctypes.c_int dataclasses.make_dataclass dis.dis hashlib.blake2b io.BytesIO io.StringIO json.dumps json.loads "
        "logging.StreamHandler logging.basicConfig lzma.compress numpy.random.RandomState pprint.pformat "
        "pprint.pprint queue.SimpleQueue random.SystemRandom regex.match requests.Session shlex.split "
        "shutil.get_terminal_size subprocess.Popen threading.Condition threading.RLock types.FunctionType "
        "types.new_class urllib.parse.quote uuid.uuid5",
    ),
    ("GB0158", "a method of an array that torch._numpy does not have", "numpy.ndarray.tobytes"),
    ("GB0170", "branches on a tensor inside", "torch.testing.assert_close"),
    (
        "GB0208",
        "an operation whose Python result cannot stand in a graph",
        "numpy.isscalar numpy.ndim numpy.size torch.Tensor.__reduce_ex__ torch.Tensor.is_pinned "
        "torch.Tensor.is_same_size torch.Tensor.storage torch.Tensor.storage_offset "
        "torch.backends.cuda.flash_sdp_enabled torch.backends.cudnn.is_available torch.backends.openmp.is_available "
        "torch.can_cast torch.cuda.device_count torch.cuda.max_memory_allocated torch.cuda.memory_allocated "
        "torch.cuda.memory_reserved torch.get_default_device torch.get_float32_matmul_precision torch.get_num_threads "
        "torch.initial_seed torch.is_inference torch.is_same_size torch.is_storage torch.result_type",
    ),
    (
        "GB0208",
        "reaches an operation whose Python result cannot stand in a graph",
        "torch.__config__.show torch.backends.mps.is_available torch.nn.Module.load_state_dict",
    ),
    ("GB0262", "a context manager that is not traced", "contextlib.closing contextlib.redirect_stdout"),
    (
        "GB0264",
        "constructs a parameter",
        "torch.func.stack_module_state torch.nn.Linear torch.nn.utils.skip_init torch.nn.utils.weight_norm",
    ),
    ("GB0277", "makes a sparse tensor", "torch.Tensor.to_sparse"),
    (
        "GB0291",
        "a logger's method",
        "logging.Logger.addHandler logging.Logger.critical logging.Logger.debug logging.Logger.error "
        "logging.Logger.exception logging.Logger.getChild logging.Logger.getEffectiveLevel logging.Logger.hasHandlers "
        "logging.Logger.info logging.Logger.isEnabledFor logging.Logger.log logging.Logger.setLevel "
        "logging.Logger.warn logging.Logger.warning",
    ),
    ("GB0299", "a lookup that is not traced", "string.Template.substitute"),
    ("GB0363", "constructs a generator of random numbers", "torch.Generator"),
    ("GB0374", "makes a sparse tensor", "torch.sparse_csr_tensor"),
    (
        "GB0467",
        "writes an attribute that is not traced",
        "logging.disable torch.nn.Module.register_forward_hook typing.no_type_check",
    ),
    ("GB0569", "a tensor's `repr`", "torch.Tensor.__repr__"),
    ("GB0811", "a wrapper that is not traced", "contextlib.contextmanager"),
    (
        "GB4841",
        "a logging function",
        "logging.critical logging.debug logging.error logging.exception logging.info logging.log logging.warning",
    ),
    ("GB7650", "sets the state of a generator of random numbers", "torch.Generator.manual_seed"),
    ("GB7786", "a string method that is not traced", "inspect.cleandoc inspect.getdoc"),
    ("GB9186", "differentiates inside the region", "torch.autograd.grad"),
    ("GB0104", "reads the autograd graph", "torch.Tensor.grad_fn"),
    ("GB0108", "keeps a gradient of an intermediate result", "torch.Tensor.retain_grad"),
    ("GB0014", "a recurrent network", "torch.nn.LSTM.forward torch.nn.GRU.forward torch.nn.RNN.forward"),
    ("GB0142", "enters a lock", "transformers.utils.logging.get_logger"),
    ("GB0291", "a logger's method, here one that caches", "logging.Logger.warning_once logging.Logger.info_once"),
)

#: calls that trace, although a rule would have them refused or one would guess so
TRACED: Final = (
    "argparse.Namespace asyncio.Event asyncio.Lock builtins.abs builtins.all builtins.any builtins.ascii builtins.bin "
    "builtins.bool builtins.callable builtins.chr builtins.complex builtins.dict builtins.divmod builtins.enumerate "
    "builtins.eval builtins.filter builtins.float builtins.format builtins.frozenset builtins.getattr "
    "builtins.hasattr builtins.hash builtins.hex builtins.id builtins.int builtins.isinstance builtins.issubclass "
    "builtins.iter builtins.len builtins.list builtins.locals builtins.map builtins.max builtins.min builtins.next "
    "builtins.oct builtins.ord builtins.pow builtins.range builtins.repr builtins.reversed builtins.round "
    "builtins.set builtins.slice builtins.sorted builtins.str builtins.sum builtins.tuple builtins.type builtins.vars "
    "builtins.zip collections.ChainMap collections.Counter collections.OrderedDict collections.UserDict "
    "collections.UserList collections.defaultdict collections.deque collections.namedtuple colorsys.rgb_to_hsv "
    "contextlib.ExitStack contextlib.nullcontext contextlib.suppress dataclasses.asdict dataclasses.astuple "
    "dataclasses.field dataclasses.is_dataclass dataclasses.replace difflib.get_close_matches enum.Enum "
    "fractions.Fraction functools.partial functools.partialmethod functools.reduce functools.total_ordering "
    "functools.update_wrapper functools.wraps glob.escape heapq.merge html.escape importlib.metadata.version "
    "inspect.getcallargs inspect.getfullargspec inspect.getmembers inspect.getmodule inspect.getmro "
    "inspect.isabstract inspect.isbuiltin inspect.isclass inspect.iscoroutinefunction inspect.isfunction "
    "inspect.isgenerator inspect.isgeneratorfunction inspect.ismethod inspect.ismodule inspect.signature "
    "inspect.unwrap itertools.accumulate itertools.chain itertools.chain.from_iterable itertools.combinations "
    "itertools.compress itertools.count itertools.cycle itertools.dropwhile itertools.filterfalse itertools.groupby "
    "itertools.islice itertools.pairwise itertools.permutations itertools.product itertools.repeat itertools.starmap "
    "itertools.takewhile itertools.tee itertools.zip_longest json.JSONEncoder keyword.iskeyword logging.getLevelName "
    "multiprocessing.current_process operator.abs operator.add operator.and_ operator.attrgetter operator.concat "
    "operator.contains operator.countOf operator.eq operator.floordiv operator.getitem operator.iadd operator.index "
    "operator.invert operator.is_ operator.is_not operator.itemgetter operator.length_hint operator.lshift "
    "operator.lt operator.matmul operator.methodcaller operator.mod operator.mul operator.neg operator.not_ "
    "operator.or_ operator.pos operator.pow operator.sub operator.truediv operator.truth operator.xor "
    "os.environ.__contains__ os.environ.__getitem__ os.environ.copy os.environ.get os.fspath os.getenv "
    "os.path.basename os.path.commonprefix os.path.dirname os.path.expanduser os.path.isabs os.path.join "
    "os.path.split os.path.splitext pathlib.Path pathlib.Path.home pathlib.Path.joinpath pathlib.Path.name "
    "pathlib.Path.stem pathlib.PurePath platform.machine platform.node platform.processor platform.python_version "
    "platform.system random.Random random.Random.randint random.Random.random random.Random.randrange "
    "random.Random.uniform random.randint random.randrange random.uniform re.Match.group re.Match.groups "
    "re.Pattern.findall re.Pattern.match re.Pattern.search re.Pattern.sub re.compile re.escape re.findall "
    "re.fullmatch re.match re.search re.split re.sub reprlib.repr shlex.quote statistics.fmean statistics.median "
    "string.Template string.capwords struct.pack struct.unpack sys.exc_info sys.getrecursionlimit sys.intern "
    "tempfile.gettempdir textwrap.dedent textwrap.fill textwrap.indent textwrap.shorten textwrap.wrap "
    "threading.Event.is_set threading.main_thread torch.FloatTensor torch.LongTensor torch.Size torch.Tensor "
    "torch._assert_async torch._check torch._dynamo.is_compiling torch._dynamo.mark_static "
    "torch.accelerator.current_accelerator torch.accelerator.is_available torch.amp.autocast "
    "torch.are_deterministic_algorithms_enabled torch.as_tensor torch.atleast_2d torch.autocast "
    "torch.autograd.forward_ad.dual_level torch.autograd.profiler.record_function torch.backends.cudnn.version "
    "torch.bernoulli torch.block_diag torch.broadcast_shapes torch.broadcast_tensors torch.bucketize "
    "torch.cartesian_prod torch.cdist torch.chunk torch.compile torch.compiler.is_compiling "
    "torch.compiler.is_dynamo_compiling torch.compiler.is_exporting torch.complex torch.cond torch.cuda.amp.autocast "
    "torch.cuda.empty_cache torch.cuda.is_available torch.device torch.distributed.is_available "
    "torch.distributed.is_initialized torch.einsum torch.empty torch.enable_grad "
    "torch.fake_quantize_per_tensor_affine torch.from_numpy torch.func.functional_call torch.func.grad "
    "torch.func.jacrev torch.func.vmap torch.get_autocast_dtype torch.get_autocast_gpu_dtype torch.get_default_dtype "
    "torch.get_device_module torch.histc torch.histogram torch.inference_mode torch.is_autocast_cpu_enabled "
    "torch.is_autocast_enabled torch.is_complex torch.is_floating_point torch.is_grad_enabled torch.is_tensor "
    "torch.isin torch.jit.annotate torch.jit.is_scripting torch.jit.is_tracing torch.linalg.cholesky "
    "torch.linalg.eigvals torch.linalg.matrix_rank torch.linalg.norm torch.linalg.svd torch.max torch.meshgrid "
    "torch.multinomial torch.nn.Buffer torch.nn.Module.add_module torch.nn.Module.apply torch.nn.Module.children "
    "torch.nn.Module.compile torch.nn.Module.cpu torch.nn.Module.eval torch.nn.Module.forward "
    "torch.nn.Module.get_submodule torch.nn.Module.modules torch.nn.Module.named_parameters "
    "torch.nn.Module.parameters torch.nn.Module.register_buffer torch.nn.Module.register_parameter "
    "torch.nn.Module.requires_grad_ torch.nn.Module.state_dict torch.nn.Module.to torch.nn.Module.train "
    "torch.nn.Module.zero_grad torch.nn.Parameter torch.nn.functional.cross_entropy torch.nn.functional.dropout "
    "torch.nn.functional.embedding torch.nn.functional.grid_sample torch.nn.functional.gumbel_softmax "
    "torch.nn.functional.interpolate torch.nn.functional.normalize torch.nn.functional.pad "
    "torch.nn.init.calculate_gain torch.nn.init.constant_ torch.nn.init.kaiming_normal_ torch.nn.init.normal_ "
    "torch.nn.init.xavier_uniform_ torch.nn.init.zeros_ torch.nn.utils.clip_grad_norm_ torch.nn.utils.get_total_norm "
    "torch.nn.utils.parameters_to_vector torch.nn.utils.parametrize.is_parametrized torch.nn.utils.rnn.pad_sequence "
    "torch.nn.utils.vector_to_parameters torch.no_grad torch.norm torch.normal torch.numel "
    "torch.overrides.has_torch_function torch.overrides.is_tensor_like torch.pca_lowrank torch.poisson "
    "torch.profiler.profile torch.profiler.record_function torch.promote_types torch.quantize_per_tensor "
    "torch.randperm torch.scalar_tensor torch.seed torch.set_default_dtype torch.set_float32_matmul_precision "
    "torch.set_grad_enabled torch.set_printoptions torch.sort torch.split torch.stft torch.svd_lowrank torch.sym_int "
    "torch.sym_max torch.tensor torch.tensor_split torch.topk torch.tril_indices torch.use_deterministic_algorithms "
    "torch.utils._pytree.tree_flatten torch.utils._pytree.tree_map torch.utils.checkpoint.checkpoint "
    "torch.view_as_complex torch.vmap torch.xpu.is_available traceback.format_exc types.DynamicClassAttribute "
    "types.MappingProxyType typing.cast typing.get_args typing.get_origin typing.get_type_hints typing.overload "
    "urllib.parse.urlparse uuid.UUID warnings.catch_warnings weakref.WeakKeyDictionary weakref.WeakSet "
    "weakref.WeakValueDictionary weakref.ref numpy.random.seed importlib.util.find_spec "
)

#: modules all of whose functions end the graph, as far as they were tried and do not stand in `TRACED`
MODULES: Final[Mapping[str, tuple[str, str]]] = {
    "binascii": ("GB0007", "C functions"),
    "bisect": ("GB0007", "C functions"),
    "cmath": ("GB0007", "C functions"),
    "gc": ("GB0007", "C functions"),
    "pickle": ("GB0007", "C functions"),
    "random": ("GB0007", "bound methods of a hidden generator; only those with a handler trace"),
    "signal": ("GB0007", "C functions"),
    "subprocess": ("GB0007", "reaches C functions"),
    "time": ("GB0007", "C functions"),
    "unicodedata": ("GB0007", "C functions"),
    "zlib": ("GB0007", "C functions"),
    "torch.hub": ("GB0007", "a module that the trace rules skip"),
    "torch.utils.data": ("GB0007", "a module that the trace rules skip"),
}

#: name and kind of the first argument ("tensor", "module", "container", "class", "str", "none") to break id and reason;
#: the empty id says that the call traces
BY_ARGUMENT: Final[Mapping[tuple[str, str], tuple[str, str]]] = {
    ("copy.copy", "tensor"): ("GB0208", "reaches Tensor.__reduce_ex__"),
    ("copy.copy", "module"): ("GB0008", "reaches a method that is skipped"),
    ("copy.copy", "container"): ("GB0007", "reaches a C method of the container"),
    ("copy.deepcopy", "tensor"): ("GB4198", "reaches Tensor.__deepcopy__"),
    ("copy.deepcopy", "module"): ("GB4198", "reaches Tensor.__deepcopy__"),
    ("dataclasses.fields", "class"): ("GB0180", "reads an attribute of a class that is not traced; an instance traces"),
    ("dataclasses.asdict", "tensor"): ("GB4198", "copies its fields deeply, tensors among them"),
    ("logging.getLogger", "str"): ("GB6215", "compares names in a way that is not traced; without a name it traces"),
    ("torch._assert", "tensor"): ("GB0033", "makes a Python bool from a tensor"),
    ("builtins.range", "tensor"): ("GB0059", "makes Python integers from a tensor"),
    ("builtins.complex", "tensor"): ("GB0059", "makes a Python number from a tensor"),
    ("builtins.str", "tensor"): ("GB0059", "makes text from a tensor's values"),
    ("builtins.repr", "tensor"): ("GB0569", "makes text from a tensor's values"),
    ("builtins.int", "tensor"): ("GB0124", "makes a Python number from a tensor"),
    ("builtins.float", "tensor"): ("GB0124", "makes a Python number from a tensor"),
    ("builtins.bool", "tensor"): ("GB0124", "makes a Python number from a tensor"),
    ("numpy.where", "alone"): ("GB0036", "numpy.where with one argument is numpy.nonzero"),
}

#: NumPy functions that, called without a size, give one Python number; that number is read out of the graph (GB0033)
SCALAR_UNLESS_SIZED: Final = (
    "numpy.random.normal numpy.random.rand numpy.random.randint numpy.random.randn numpy.random.random "
    "numpy.random.random_sample numpy.random.sample numpy.random.uniform "
)

#: calls that trace and give a Python number whose value is unknown while tracing: a branch on it breaks (GB0170)
UNKNOWN_NUMBERS: Final[Mapping[str, str]] = {
    "random.randint": "int",
    "random.randrange": "int",
    "random.uniform": "float",
    "random.Random.randint": "int",
    "random.Random.randrange": "int",
    "random.Random.random": "float",
    "random.Random.uniform": "float",
}

#: breaks that are gone under fullgraph=True, which switches the capture flags on; compiled with that flag they traced
DEFAULT_ONLY: Final = (
    "builtins.bool builtins.float builtins.int numpy.argwhere numpy.array_equal numpy.bincount numpy.flatnonzero "
    "numpy.ndarray.item numpy.nonzero numpy.unique numpy.where torch.Tensor.__bool__ torch.Tensor.__contains__ "
    "torch.Tensor.__float__ torch.Tensor.__int__ torch.Tensor.argwhere torch.Tensor.bincount torch.Tensor.item "
    "torch.Tensor.masked_select torch.Tensor.nonzero torch.Tensor.repeat_interleave torch.Tensor.unique "
    "torch.Tensor.unique_consecutive torch.argwhere torch.bincount torch.masked_select torch.nonzero "
    "torch.repeat_interleave torch.unique torch.unique_consecutive torch.where "
)

#: NumPy functions that torch._numpy has no counterpart of (GB0294), below `numpy`
NUMPY_ONLY: Final = (
    "apply_along_axis apply_over_axes argpartition array2string array_repr array_str asanyarray asarray_chkfinite "
    "asfortranarray asmatrix astype base_repr binary_repr bitwise_count block bmat busday_count busday_offset "
    "compress cumulative_prod cumulative_sum datetime_as_string datetime_data delete digitize ediff1d einsum_path "
    "errstate extract format_float_positional format_float_scientific frexp frombuffer fromfile fromfunction fromiter "
    "frompyfunc fromregex fromstring genfromtxt get_include get_printoptions getbufsize geterr geterrcall "
    "histogram_bin_edges insert interp intersect1d is_busday isdtype isfortran isin isnat iterable ix_ lexsort "
    "linalg.cross linalg.diagonal linalg.matmul linalg.matrix_norm linalg.matrix_transpose linalg.outer "
    "linalg.svdvals linalg.tensordot linalg.trace linalg.vecdot linalg.vector_norm load loadtxt mask_indices "
    "matrix_transpose matvec may_share_memory mintypecode nanargmax nanargmin nancumprod nancumsum nanmax nanmean "
    "nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar nested_iters packbits partition "
    "piecewise place poly polyadd polyder polydiv polyfit polyint polymul polysub polyval printoptions promote_types "
    "putmask random.beta random.binomial random.bytes random.chisquare random.default_rng random.dirichlet "
    "random.exponential random.f random.gamma random.geometric random.get_bit_generator random.get_state "
    "random.gumbel random.hypergeometric random.laplace random.logistic random.lognormal random.logseries "
    "random.multinomial random.multivariate_normal random.negative_binomial random.noncentral_chisquare "
    "random.noncentral_f random.pareto random.permutation random.poisson random.power random.random_integers "
    "random.ranf random.rayleigh random.set_bit_generator random.set_state random.standard_cauchy "
    "random.standard_exponential random.standard_gamma random.standard_normal random.standard_t random.triangular "
    "random.vonmises random.wald random.weibull random.zipf ravel_multi_index require roots save savetxt savez "
    "savez_compressed select set_printoptions setbufsize setdiff1d seterr seterrcall setxor1d shares_memory "
    "sort_complex spacing trapezoid trim_zeros typename union1d unique_all unique_counts unique_inverse unique_values "
    "unpackbits unravel_index unstack unwrap vecdot vecmat vectorize "
)

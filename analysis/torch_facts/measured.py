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
        "time.time_ns timeit.default_timer unicodedata.category unicodedata.normalize warnings.warn weakref.proxy "
        "zlib.adler32 zlib.compress zlib.crc32 zlib.decompress",
    ),
    (
        "GB0007",
        "a Python function that reaches such a C function",
        "asyncio.new_event_loop base64.b64decode base64.b64encode concurrent.futures.ThreadPoolExecutor "
        "getpass.getuser glob.glob gzip.compress hashlib.new heapq.nlargest heapq.nsmallest inspect.currentframe "
        "inspect.getmembers inspect.signature inspect.stack "
        "locale.getlocale multiprocessing.Queue multiprocessing.Value multiprocessing.cpu_count "
        "os.environ.__setitem__ os.environ.setdefault os.environ.update os.get_exec_path os.makedirs "
        "os.path.abspath os.path.exists "
        "os.path.getmtime os.path.getsize os.path.isdir os.path.isfile os.path.islink os.path.lexists "
        "os.path.normpath os.path.realpath os.path.relpath os.path.samefile os.walk pathlib.Path.cwd "
        "pathlib.Path.exists pathlib.Path.glob pathlib.Path.is_dir pathlib.Path.is_file pathlib.Path.is_symlink "
        "pathlib.Path.iterdir pathlib.Path.mkdir pathlib.Path.open pathlib.Path.owner pathlib.Path.read_text "
        "pathlib.Path.rename pathlib.Path.resolve pathlib.Path.samefile pathlib.Path.stat pathlib.Path.touch "
        "pathlib.Path.unlink pathlib.Path.write_text "
        "pdb.set_trace queue.PriorityQueue queue.Queue shutil.copy shutil.disk_usage shutil.rmtree shutil.which "
        "signal.getsignal signal.signal subprocess.check_output subprocess.run tempfile.TemporaryDirectory "
        "tempfile.mkdtemp tempfile.mkstemp threading.Event threading.Semaphore threading.Thread threading.Timer "
        "threading.current_thread tqdm.auto.tqdm tqdm.tqdm tqdm.trange traceback.extract_stack traceback.format_stack "
        "traceback.print_stack typing.NamedTuple typing.NewType typing.TypeVar uuid.uuid1 uuid.uuid4 "
        "warnings.filterwarnings warnings.formatwarning warnings.resetwarnings warnings.showwarning "
        "warnings.simplefilter",
    ),
    ("GB0008", "a function or method that is skipped", "abc.ABC.register"),
    (
        "GB0008",
        "reaches a method that is skipped",
        "secrets.randbelow secrets.token_bytes secrets.token_hex tqdm.tqdm.write",
    ),
    (
        "GB0033",
        "hands a Python number or bool made from a tensor's values out of the graph",
        "numpy.allclose numpy.array_equal numpy.corrcoef numpy.cov numpy.ndarray.item numpy.pad numpy.random.choice",
    ),
    (
        "GB0036",
        "the shape of the result depends on values",
        "numpy.argwhere numpy.bincount numpy.flatnonzero numpy.nonzero numpy.unique",
    ),
    (
        "GB0059",
        "a builtin that is not traced",
        "builtins.breakpoint builtins.bytearray builtins.bytes builtins.classmethod builtins.compile builtins.dir "
        "builtins.exec builtins.globals builtins.memoryview builtins.object builtins.open builtins.print "
        "builtins.property builtins.staticmethod io.open operator.delitem operator.indexOf operator.setitem",
    ),
    (
        "GB0059",
        "reaches a builtin that is not traced",
        "ast.literal_eval ast.parse collections.Counter.most_common configparser.ConfigParser fnmatch.filter "
        "fnmatch.fnmatch pathlib.Path.match pathlib.Path.read_bytes pathlib.Path.write_bytes statistics.mode "
        "tempfile.NamedTemporaryFile traceback.print_exc zipfile.is_zipfile",
    ),
    ("GB0082", "a coroutine", "asyncio.run asyncio.sleep"),
    ("GB0109", "a list of numbers other than integers", "numpy.ndarray.tolist"),
    ("GB0116", "constructs a class with a metaclass or `__new__` that is not traced", "enum.auto"),
    ("GB0134", "an iterator that is not traced", "statistics.mean statistics.stdev statistics.variance"),
    (
        "GB0142",
        "enters a lock",
        "concurrent.futures.ThreadPoolExecutor.map concurrent.futures.ThreadPoolExecutor.submit queue.Queue.empty "
        "queue.Queue.full queue.Queue.get queue.Queue.get_nowait queue.Queue.put queue.Queue.qsize "
        "threading.Event.set threading.Thread.start threading.active_count threading.enumerate",
    ),
    (
        "GB0147",
        "constructs an object of a C type",
        "array.array calendar.monthrange contextvars.ContextVar datetime.date datetime.datetime datetime.timedelta "
        "decimal.Decimal itertools.combinations_with_replacement socket.socket struct.Struct threading.local "
        "types.GenericAlias types.MethodType types.ModuleType types.SimpleNamespace xml.etree.ElementTree.Element",
    ),
    ("GB0150", "reads an attribute of an exception", "traceback.format_exception"),
    (
        "GB0156",
        "a method of an object of a C type",
        "array.array.append builtins.str.maketrans collections.deque.rotate contextvars.ContextVar.get "
        "contextvars.ContextVar.set "
        "datetime.date.today datetime.datetime.fromisoformat datetime.datetime.fromtimestamp "
        "datetime.datetime.isoformat datetime.datetime.now datetime.datetime.strftime datetime.datetime.strptime "
        "datetime.datetime.timestamp datetime.datetime.today datetime.datetime.utcnow "
        "datetime.timedelta.total_seconds io.StringIO.getvalue io.StringIO.read io.StringIO.write "
        "io.TextIOWrapper.close io.TextIOWrapper.read io.TextIOWrapper.write "
        "numpy.lib.stride_tricks.sliding_window_view random.Random.choice random.Random.gauss random.Random.sample "
        "random.Random.shuffle struct.Struct.pack sys.stderr.write sys.stdout.flush sys.stdout.isatty "
        "sys.stdout.write weakref.WeakValueDictionary.get",
    ),
    (
        "GB0156",
        "reaches a method or the constructor of a C type",
        "argparse.ArgumentParser bz2.compress cProfile.Profile concurrent.futures.Future ctypes.addressof "
        "ctypes.c_int dataclasses.make_dataclass dis.dis functools.lru_cache hashlib.blake2b io.BytesIO io.StringIO "
        "json.dumps json.loads logging.StreamHandler logging.basicConfig lzma.compress numpy.random.RandomState "
        "pprint.pformat pprint.pprint queue.SimpleQueue random.SystemRandom regex.match requests.Session shlex.split "
        "shutil.get_terminal_size subprocess.Popen threading.Condition threading.RLock types.FunctionType "
        "types.new_class urllib.parse.quote uuid.uuid5 weakref.WeakMethod",
    ),
    ("GB0158", "a method of an array that torch._numpy does not have", "numpy.ndarray.tobytes"),
    ("GB0208", "an operation whose Python result cannot stand in a graph", "numpy.isscalar numpy.ndim numpy.size"),
    ("GB0262", "a context manager that is not traced", "contextlib.closing contextlib.redirect_stdout"),
    (
        "GB0291",
        "a logger's method",
        "logging.Logger.addHandler logging.Logger.critical logging.Logger.debug logging.Logger.error "
        "logging.Logger.exception logging.Logger.getChild logging.Logger.getEffectiveLevel logging.Logger.hasHandlers "
        "logging.Logger.info logging.Logger.isEnabledFor logging.Logger.log logging.Logger.setLevel "
        "logging.Logger.warn logging.Logger.warning",
    ),
    ("GB0291", "a logger's method, here one that caches", "logging.Logger.info_once logging.Logger.warning_once"),
    ("GB0292", "a method that gives an iterator of matches", "re.Pattern.finditer re.Pattern.scanner"),
    ("GB0299", "a lookup that is not traced", "string.Template.substitute"),
    ("GB0467", "writes an attribute that is not traced", "logging.disable typing.no_type_check"),
    ("GB0811", "a wrapper that is not traced", "contextlib.contextmanager"),
    (
        "GB4841",
        "a logging function",
        "logging.critical logging.debug logging.error logging.exception logging.info logging.log logging.warning",
    ),
    ("GB7786", "a string method that is not traced", "inspect.cleandoc inspect.getdoc"),
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
    "builtins.zip collections.ChainMap collections.Counter collections.Counter.elements collections.Counter.update "
    "collections.OrderedDict collections.UserDict collections.UserList collections.defaultdict collections.deque "
    "collections.deque.append collections.deque.appendleft collections.deque.clear collections.deque.extend "
    "collections.deque.pop collections.deque.popleft collections.namedtuple colorsys.rgb_to_hsv contextlib.ExitStack "
    "contextlib.nullcontext contextlib.suppress dataclasses.asdict dataclasses.astuple dataclasses.field "
    "dataclasses.is_dataclass dataclasses.replace difflib.get_close_matches enum.Enum fractions.Fraction "
    "functools.partial functools.partialmethod functools.reduce functools.total_ordering functools.update_wrapper "
    "functools.wraps glob.escape heapq.merge html.escape importlib.metadata.version importlib.util.find_spec "
    "inspect.getcallargs inspect.getfullargspec inspect.getmembers inspect.getmodule inspect.getmro "
    "inspect.isabstract inspect.isbuiltin inspect.isclass inspect.iscoroutinefunction inspect.isfunction "
    "inspect.isgenerator inspect.isgeneratorfunction inspect.ismethod inspect.ismodule inspect.signature "
    "inspect.unwrap itertools.accumulate itertools.chain itertools.chain.from_iterable itertools.combinations "
    "itertools.compress itertools.count itertools.cycle itertools.dropwhile itertools.filterfalse itertools.groupby "
    "itertools.islice itertools.pairwise itertools.permutations itertools.product itertools.repeat itertools.starmap "
    "itertools.takewhile itertools.tee itertools.zip_longest json.JSONEncoder keyword.iskeyword logging.getLevelName "
    "multiprocessing.current_process numpy.random.seed operator.abs operator.add operator.and_ operator.attrgetter "
    "operator.concat operator.contains operator.countOf operator.eq operator.floordiv operator.getitem operator.iadd "
    "operator.index operator.invert operator.is_ operator.is_not operator.itemgetter operator.length_hint "
    "operator.lshift operator.lt operator.matmul operator.methodcaller operator.mod operator.mul operator.neg "
    "operator.not_ operator.or_ operator.pos operator.pow operator.sub operator.truediv operator.truth operator.xor "
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
    "threading.Event.is_set threading.main_thread traceback.format_exc types.DynamicClassAttribute "
    "types.MappingProxyType typing.cast typing.get_args typing.get_origin typing.get_type_hints typing.overload "
    "urllib.parse.urlparse uuid.UUID warnings.catch_warnings weakref.WeakKeyDictionary weakref.WeakSet "
    "weakref.WeakValueDictionary weakref.ref "
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
    "torch.jit.CompilationUnit": ("GB2977", "functions that are compiled as TorchScript from a text"),
    "torch.hub": ("GB0007", "a module that the trace rules skip"),
    "torch.utils.data": ("GB0007", "a module that the trace rules skip"),
}

#: modules whose functions trace, but not with a tensor
NOT_WITH_TENSORS: Final[Mapping[str, tuple[str, str]]] = {
    "math": ("GB0033", "makes a Python number from a tensor"),
}

#: name and kind of the first argument, or of a method's receiver ("tensor", "module", "container", "class", "str";
#: "alone": the only argument; "input": a tensor that enters the graph from outside), to break id and reason; the empty
#: id says that the call traces
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
    ("builtins.pow", "tensor"): ("GB0059", "the builtin with a tensor is not traced; `**` is"),
    ("builtins.chr", "tensor"): ("GB0059", "makes a Python number from a tensor"),
    ("builtins.bytes", "tensor"): ("GB0059", "makes bytes from a tensor's values"),
    ("builtins.bin", "tensor"): ("GB0059", "makes text from a tensor's values"),
    ("builtins.hex", "tensor"): ("GB0059", "makes text from a tensor's values"),
    ("builtins.ascii", "tensor"): ("GB0059", "makes text from a tensor's values"),
    ("math.radians", "tensor"): ("", "has a handler that stays a tensor"),
    ("torch.Tensor.requires_grad_", "input"): ("GB0125", "asks an input of the graph for gradients"),
    ("torch.Tensor.unsqueeze_", "input"): ("GB0148", "changes the metadata of an input"),
    ("torch.Tensor.squeeze_", "input"): ("GB0148", "changes the metadata of an input"),
    ("torch.Tensor.transpose_", "input"): ("GB0148", "changes the metadata of an input"),
    ("torch.Tensor.t_", "input"): ("GB0148", "changes the metadata of an input"),
    ("torch.Tensor.detach_", "input"): ("GB0148", "changes the metadata of an input"),
    ("torch.Tensor.resize_as_", "input"): ("GB0148", "changes the metadata of an input"),
    ("torch.Tensor.swapaxes_", "input"): ("GB0148", "changes the metadata of an input"),
    ("torch.Tensor.swapdims_", "input"): ("GB0148", "changes the metadata of an input"),
    ("torch.nn.functional.one_hot", "alone"): ("GB0246", "the number of classes depends on values"),
    ("numpy.where", "alone"): ("GB0036", "numpy.where with one argument is numpy.nonzero"),
}

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

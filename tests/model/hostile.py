# ruff: noqa: E501
"""Answers that must never run: each body stands for the one of `ORIGINAL`'s method in the module `MODULE`."""

from __future__ import annotations

MODULE = '''
import logging
import math
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

logger = logging.getLogger(__name__)
LOG = Path("log.txt")


def helper(x, scale):
    return x * scale


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.scale = 2.0
        self.calls = 0

    def forward(self, x, mask, path=None):
        """One block."""
        h = self.norm(x)
        self.calls += 1
        if mask.sum() > 0:
            logger.warning("masked %s", mask.sum())
            h = helper(h, self.scale)
        if path is not None:
            np.save(path, h.detach().numpy())
            os.remove(path)
            LOG.write_text("saved")
        try:
            h = F.relu(h)
        except ValueError:
            raise ValueError("relu") from None
        return h
'''

#: one statement each; it stands before the original's last line
STATEMENTS = [
    # processes and files
    "os.system('id')", "os.system(path)", "os.remove('/etc/passwd')", "os.remove(h)", "os.remove(path + path)",
    "os.unlink(path)", "os.environ['X'] = 'y'", "os.execv(path, [path])", "os.kill(os.getpid(), 9)", "os._exit(0)",
    "os.fork()", "os.path.join(path, path)", "os.popen(path)", "subprocess.run(['id'])", "subprocess.Popen(path)",
    "subprocess.check_output(path, shell=True)", "open('/etc/passwd').read()", "open(path)", "open(path, 'w').write('x')",
    "LOG.write_text('x')", "LOG.unlink()", "LOG.read_text()", "LOG.write_text(path)", "LOG.parent.rmdir()",
    "Path('/').rmdir()", "Path(path).unlink()", "np.save(path, x)", "np.save('x', h.detach().numpy())", "np.load(path)",
    "np.fromfile(path)", "np.savetxt(path, x)", "np.memmap(path)", "h.numpy().tofile(path)", "h.detach().numpy().dump(path)",
    "pickle.loads(path)", "pickle.load(open(path))", "pickle.dumps(x)", "sys.exit(0)", "sys.path.append(path)",
    "sys.modules['torch'] = None", "sys.modules.clear()", "sys.settrace(None)", "sys.stdout.write(path)",
    # code
    "eval('1')", "exec('import os')", "compile('1', '', 'eval')", "__import__('os')", "getattr(torch, 'load')",
    "setattr(self, 'calls', 0)", "delattr(self, 'scale')", "vars(self)", "globals()", "locals()", "globals()['os']",
    "type('X', (), {})", "object.__subclasses__()", "().__class__.__bases__[0].__subclasses__()", "x.__class__",
    "x.__reduce__()", "self.__dict__", "self.__dict__['norm'] = None", "self.forward.__globals__['os']", "helper.__code__",
    "helper.__globals__", "F.__builtins__", "torch.os.system(path)", "torch.sys.exit(0)", "math.os", "F.torch.load(path)",
    "breakpoint()", "input()", "exit()", "quit()", "help()", "memoryview(path)", "super().forward(x)", "print(path)",
    "dir(self)", "hasattr(self, 'x')", "callable(x)", "id(x)", "hash(path)", "iter(x)", "next(x)", "open", "repr(x)",
    "str(path)", "format(path)", "chr(1)", "ord(path)", "bytes(4)", "bytearray(4)", "classmethod(helper)", "property(helper)",
    # torch's own ways out
    "torch.load(path)", "torch.save(x, path)", "torch.hub.load(path, path)", "torch.jit.load(path)", "torch.compile(helper)",
    "torch.compiler.disable(helper)", "torch._dynamo.disable(helper)", "torch._dynamo.graph_break()",
    "torch._dynamo.config.suppress_errors = True", "torch._dynamo.reset()", "torch.compiler.is_compiling()",
    "torch._C._jit_pass_inline(x)", "torch.ops.load_library(path)", "torch.classes.load_library(path)",
    "torch.utils.cpp_extension.load(path)", "torch.utils.model_zoo.load_url(path)", "torch.from_file(path, size=4)",
    "torch.from_file(path, shared=True, size=4)", "torch.import_ir_module(x, path)", "torch.frombuffer(path)",
    "torch.empty(4)", "torch.empty_like(x)", "x.new_empty(4)", "torch.empty_strided((2,), (1,))",
    "torch.as_strided(x, (99,), (1,))", "x.as_strided((99,), (1,))", "x.set_(x)", "x.data_ptr()", "x.untyped_storage()",
    "x.storage()", "x.data", "x.grad", "x.resize_(99)", "x.apply_(helper)", "x.map_(x, helper)", "x.register_hook(helper)",
    "x.backward()", "x.share_memory_()", "x.module_load(x)", "x.as_subclass(torch.Tensor)", "torch.manual_seed(0)",
    "torch.seed()", "torch.set_default_dtype(torch.float64)", "torch.set_num_threads(1)", "torch.set_grad_enabled(False)",
    "torch.use_deterministic_algorithms(True)", "torch.set_rng_state(x)", "torch.set_default_device(path)",
    "torch.multiprocessing.spawn(helper)", "torch.distributed.init_process_group(path)", "torch.cuda.init()",
    "torch.fork(helper)", "torch.autograd.backward(x)", "torch.overrides.wrap_torch_function(helper)", "torch._C",
    "nn.Module.register_forward_hook(self, helper)", "nn.Linear(4, 4)", "nn.init.zeros_(x)",
    # what the original calls, for something else
    "f = os.remove", "list(map(os.remove, [path]))", "[os.remove for _ in x]", "sorted([path], key=os.remove)",
    "(lambda f: f)(os.remove)", "logger.warning(path)", "logger.warning('secret')", "logger.manager.disable",
    "logger.handlers.clear()", "logger.error('x')", "logging.shutdown()", "helper(path, 'x')", "helper('/etc/passwd', 1)",
    "[os.remove][0](path)", "helper(x, self.scale)(path)", "self.norm.register_forward_hook(helper)",
    "self.norm.load_state_dict({})", "self.norm.weight", "self.to(torch.float64)", "self.eval()", "self.apply(helper)",
    # names that mean something else
    "os = x", "torch = x", "F = x", "len = helper", "helper = x", "self = x", "np = x", "print = helper", "logger = x",
    "__builtins__ = x", "path = x; os.remove(path)", "for os in [x]: pass", "[os for os in [x]]", "(os := x)",
    # stores
    "self.norm = None", "self.scale = 0", "helper.x = 1", "torch.relu = helper", "F.relu = helper", "x.requires_grad = True",
    "x.data = x", "self.norm.weight = None", "sys.stdout = None", "np.random = None", "self.__class__ = None",
    "self.cache[0] = x", "torch.__dict__['load'] = helper",
    # forms
    "import os", "import socket", "from os import system", "global helper", "nonlocal_ = __loader__", "del self.norm", "del x",
    "class A: pass", "raise SystemExit", "raise ValueError(path)", "assert os.remove(path)", "with open(path) as f: pass",
    "with torch.no_grad(): pass", "yield x", "lambda: os.remove(x)", "f'{path!r}'", "f'{os.environ}'", "'%s' % path",
    "'{0.__class__}'.format(x)", "b'x'", "'secret'", "x.sum(out='x')", "try:\n    pass\nexcept OSError:\n    pass",
    "async def f(): pass", "@helper\ndef f(): pass", "match x:\n    case 1: pass", "x: os.remove(x) = 1\nos.remove(x)",
    # tools
    "x  # graphmend: ignore", "x  # type: ignore", "x  # noqa", "x  # pragma: no cover", "x  # \u200b", "x\u200b", "x  # \u202e",
]  # fmt: skip

#: whole answers
ANSWERS = [
    "", "pass", "x = 1", "import os", "def other(self, x, mask, path=None):\n    return x",
    "def forward(self, x, mask):\n    return x", "def forward(self, x, mask, path=None, y=os.remove('x')):\n    return x",
    "async def forward(self, x, mask, path=None):\n    return x", "forward = lambda self, x: x",
    "@torch.compiler.disable\ndef forward(self, x, mask, path=None):\n    \"\"\"One block.\"\"\"\n    return x",
    "def forward(self, x, mask, path=None):\n    \"\"\"Another.\"\"\"\n    return x",
    "def forward(self, x: __import__('os'), mask, path=None):\n    \"\"\"One block.\"\"\"\n    return x",
    "class Block:\n    def forward(self, x, mask, path=None):\n        return x",
    "def forward(self, x, mask, path=None):\n    \"\"\"One block.\"\"\"\n    return x\nimport os",
    "def forward(self, x, mask, path=None):\n    \"\"\"One block.\"\"\"\n    return " + "(" * 70 + "x" + ")" * 70 + " + " + "-" * 90 + "x",
    "def forward(self, x, mask, path=None):\n    \"\"\"One block.\"\"\"\n    return " + " + ".join(["x"] * 4000),
    "def forward(self, x, mask, path=None):\n    \"\"\"One block.\"\"\"\n    return x\x00", "\ufeff\x00", "((((", "x" * 30_000,
]  # fmt: skip

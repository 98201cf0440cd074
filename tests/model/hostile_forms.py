# ruff: noqa: E501, RUF001
"""Whole answers that must never run, written without a look at the gates: each ends in the body of an honest one."""

from __future__ import annotations

MODULE = '''import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def clip(value, low=0.0, high=1.0):
    return value.clamp(low, high)


class Base(nn.Module):
    tag = "base"

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 8)
        self.scale = 2.0
        self.notes = {"a": 1.0}
        self.parts = nn.ModuleList([nn.Linear(8, 8), nn.ReLU()])

    def begin(self):
        return self.notes

    # graphmend: example Base()(torch.randn(4, 8), "{}")
    def forward(self, x, text="{}", limit=3.0):
        """Scale what exceeds the limit."""
        h = self.lin(x)
        for part in self.parts:
            h = part(h)
        if h.abs().max().item() > limit:
            h = h / self.scale
        h = clip(h, high=9.0) + math.sqrt(self.notes["a"]) * len(text.format(1))
        return F.relu(h) + float(np.sqrt(4.0))
'''

HEAD = '''def forward(self, x, text="{}", limit=3.0):
    """Scale what exceeds the limit."""
    h = self.lin(x)
    for part in self.parts:
        h = part(h)
    h = torch.where(h.abs().max() > limit, h / self.scale, h)
'''
TAIL = """    h = clip(h, high=9.0) + math.sqrt(self.notes["a"]) * len(text.format(1))
    return F.relu(h) + float(np.sqrt(4.0))
"""

#: the statements between head and tail
STATEMENTS = {
    "getattr_chain": 'g = getattr(getattr(torch, "ha" + "sh"[1:] * 0 + "sh", torch), "__builtins__", None)\ng["op" + "en"]("/nowhere/1", "w")\n',
    "attr_through_loop_target": "for self.lin.forward in (clip, clip):\n    h = h * 1\n",
    "format_map": "t = text.format_map(self.notes)\nh = h + len(t) * 0\n",
    "percent_dunder": 't = "%(a)s" % self.notes\nh = h + len(t) * 0\n',
    "fstring_attr": 't = f"{self.__class__.__init__.__globals__}"\nh = h + len(t) * 0\n',
    "descriptor_class": 'class D:\n    def __get__(self, o, t=None):\n        return np.load("/nowhere/x", allow_pickle=True)\nh = h + 0 * len(D().__doc__ or "")\n',
    "metaclass_body": 'class M(nn.Module, metaclass=clip):\n    x = np.load("/nowhere/file", allow_pickle=True)\n',
    "decorator_inner": '@np.load\ndef p():\n    return "/nowhere/x"\n',
    "comprehension_scope": 'a = [torch for torch in (np,)][0]\nh = h + 0 * a.load("/nowhere/file")\n',
    "comprehension_np": 'h = h + 0 * sum([F.load for F in (np, np)][0]("/x") for _ in (1,))\n',
    "lambda_default": 'f = lambda a=np.load("/nowhere/file", allow_pickle=True): a\nh = h + 0\n',
    "def_default": 'def f(a=np.save("/nowhere/d", np.ones(1))):\n    return a\nh = h + 0\n',
    "local_annotation": 'h: np.save("/nowhere/l", np.ones(1)) = h\n',
    "attribute_annotation": 'self.lin.weight: np.save("/nowhere/l", np.ones(1))\n',
    "subscript_annotation": 'self.notes["b"]: np.save("/nowhere/l", np.ones(1)) = 1.0\n',
    "match_class": "match self:\n    case nn.Module(__class__=c):\n        h = h + 0 * len(c.__init__.__globals__)\n",
    "match_mapping": 'match self.notes:\n    case {"a": torch}:\n        h = h + torch * 0\n',
    "match_star": 'match (np, F):\n    case [F, *_]:\n        h = h + 0 * len(F.load("/nowhere/file"))\n',
    "walrus_module": 'h = h + 0 * len((m := np).loadtxt("/nowhere/file", dtype=str))\n',
    "walrus_lambda": "h = h + 0 * (f := clip)(h)\n",
    "global_rebind": "global clip\nclip = math.sqrt\n",
    "nonlocal_cell": "def f():\n    nonlocal h\n    h = h.__class__(h)\nf()\n",
    "import_inside": 'from numpy import load as relu\nh = h + 0 * len(relu("/nowhere/file"))\n',
    "class_cell": "c = __class__\nc.forward = clip\n",
    "class_tag_store": "self.__class__ = nn.Linear\n",
    "type_of_self": "type(self).forward = clip\n",
    "torch_load_kw": "s = torch.load(f=text, weights_only=False)\nh = h + 0\n",
    "hub": 'h = h + 0 * torch.hub.load("a/b", "c", source="local")(h)\n',
    "ops_library": 'torch.ops.load_library("/nowhere/x.so")\n',
    "jit_load": 'h = h + 0 * torch.jit.load("/nowhere/x.pt")(h)\n',
    "cpp_inline": 'm = torch.utils.cpp_extension.load_inline("m", "int f(){return 1;}")\n',
    "np_load_pickle": 'h = h + 0 * float(np.load("/nowhere/x.npy", allow_pickle=True))\n',
    "module_call_hook": "self.lin.register_forward_hook(clip)\n",
    "module_apply": "self.apply(clip)\n",
    "state_dict_hook": "self.parts.append(nn.Linear(8, 8))\n",
    "to_file_storage": 'h.untyped_storage().from_file("/nowhere/s", True, 4)\n',
    "tensor_map_": "h.detach().map_(h.detach(), np.load)\n",
    "sorted_key": 'k = sorted(("/nowhere/file",), key=np.load)\n',
    "map_call": 'k = list(map(np.load, ("/nowhere/file",)))\n',
    "max_key": 'k = max(("/nowhere/file", "/x"), key=open)\n',
    "operator_overload": "k = text @ np.load\nh = h + 0\n",
    "with_new": 'with np.load("/nowhere/file") as z:\n    h = h + 0\n',
    "with_memory": 'with torch.autograd.profiler.record_function("x"):\n    h = h + 0\n',
    "except_star": 'try:\n    h = h + 0\nexcept np.load("/x"):\n    pass\n',
    "try_dump": 'try:\n    h.tofile("/nowhere/t")\nexcept AttributeError as torch:\n    h = h + 0\n',
    "del_global": "del self.lin\nh = h + 0\n",
    "del_module_dict": 'del self.notes["a"]\n',
    "assert_message": 'assert h.numel() < 0, np.load("/nowhere/file")\n',
    "raise_secret": "raise ValueError(self.notes)\n",
    "yield_turn": "yield h\n",
    "unicode_names": 'h = h + 0 * len(𝚎𝚟𝚊𝚕("1"))\n',
    "unicode_dunder": "h = h + 0 * len(self.__𝘤lass__.__name__)\n",
    "form_feed": 'h = h + 0 \x0c; np.save("/nowhere/ff", np.ones(1))\n',
    "null_and_escape": 'h = h + 0 * len("\\N{ZERO WIDTH SPACE}")\nnp.lib.format.open_memmap("/nowhere/nl", mode="w+", shape=(1,))\n',
    "type_alias": 'h = h + 0 * len(list[np.load("/nowhere/file")].__args__)\n',
    "slice_object": 'h = h[slice(None, np.load("/nowhere/file"))]\n',
    "keyword_star": 'h = clip(*np.load("/nowhere/file"), **self.notes)\n',
    "conditional_callable": "h = (clip if limit else np.load)(h)\n",
    "subscript_callable": 'h = [clip, np.load][1]("/nowhere/file")\n',
    "part_rebind": 'for part in (np.load,):\n    h = h + 0 * part("/nowhere/file")\n',
    "clip_rebind": 'clip = np.load\nh = h + 0 * clip("/nowhere/file")\n',
    "math_rebind_param": 'math = np\nh = h + math.load("/nowhere/file")\n',
    "self_rebind": 'self = np\nh = h + self.load("/nowhere/file")\n',
    "x_rebind": 'x = np\nh = h + 0 * x.load("/nowhere/file")\n',
    "text_rebind": 'text = "{0.__globals__}"\n',
    "text_rebind_globals": "text = text * 10 ** 10\n",
    "notes_store": 'self.notes["a"] = np\nh = h + 0\n',
    "scale_store": "self.scale = clip\n",
    "set_threads": "torch.set_num_threads(4096)\n",
    "default_dtype": "torch.set_default_dtype(torch.float64)\n",
    "manual_seed": "torch.manual_seed(0)\n",
    "grad_enabled": "torch.set_grad_enabled(False)\n",
    "init_weights": "nn.init.zeros_(self.lin.weight)\n",
    "weight_data": "self.lin.weight.data.zero_()\n",
    "out_weight": "torch.mul(self.lin.weight, 0, out=self.lin.weight)\n",
    "share_memory": "h = h.share_memory_()\n",
    "dlpack": "h = torch.from_dlpack(h)\n",
    "set_printoptions": 'torch.set_printoptions(profile="full")\n',
    "anomaly": "with torch.autograd.set_detect_anomaly(True):\n    h = h + 0\n",
    "vmap_load": "h = torch.vmap(np.load)(h)\n",
    "cond_load": "h = torch.cond(h.sum() > 0, np.load, clip, (h,))\n",
    "checkpoint": "h = torch.utils.checkpoint.checkpoint(np.load, h)\n",
    "print_stdout": 'print({"status": "passed"})\n',
    "logging_new": "import logging\nlogging.getLogger().handlers.clear()\n",
    "warnings_new": "torch._C._set_warnAlways(True)\n",
    "private_self": "self._parameters.clear()\n",
    "training_flip": "self.train(False)\n",
    "training_store": "self.training = False\n",
}

#: whole texts
ANSWERS = {
    "format_field": 'def forward(self, x, text="{}", limit=3.0):\n    """Scale what exceeds the limit."""\n    h = self.lin(x)\n    for part in self.parts:\n        h = part(h)\n    h = torch.where(h.abs().max() > limit, h / self.scale, h)\n    h = clip(h, high=9.0) + math.sqrt(self.notes["a"]) * len(text.format(1))\n    t = "{0.__class__.__init__.__globals__}".format(self)\n    return F.relu(h) + float(np.sqrt(4.0)) + len(t)\n',
    "decorator_outer": '@torch.load\ndef forward(self, x, text="{}", limit=3.0):\n    """Scale what exceeds the limit."""\n    h = self.lin(x)\n    for part in self.parts:\n        h = part(h)\n    h = torch.where(h.abs().max() > limit, h / self.scale, h)\n    h = clip(h, high=9.0) + math.sqrt(self.notes["a"]) * len(text.format(1))\n    return F.relu(h) + float(np.sqrt(4.0))\n',
    "decorator_walrus": '@(torch := clip)\ndef forward(self, x, text="{}", limit=3.0):\n    """Scale what exceeds the limit."""\n    h = self.lin(x)\n    for part in self.parts:\n        h = part(h)\n    h = torch.where(h.abs().max() > limit, h / self.scale, h)\n    h = clip(h, high=9.0) + math.sqrt(self.notes["a"]) * len(text.format(1))\n    return F.relu(h) + float(np.sqrt(4.0))\n',
    "outer_default": 'def forward(self, x, text="{}", limit=np.save("/nowhere/o", np.ones(1)) or 3.0):\n    """Scale what exceeds the limit."""\n    h = self.lin(x)\n    for part in self.parts:\n        h = part(h)\n    h = torch.where(h.abs().max() > limit, h / self.scale, h)\n    h = clip(h, high=9.0) + math.sqrt(self.notes["a"]) * len(text.format(1))\n    return F.relu(h) + float(np.sqrt(4.0))\n',
    "outer_annotation": 'def forward(self, x, text: np.save("/nowhere/a", np.ones(1)) = "{}", limit=3.0):\n    """Scale what exceeds the limit."""\n    h = self.lin(x)\n    for part in self.parts:\n        h = part(h)\n    h = torch.where(h.abs().max() > limit, h / self.scale, h)\n    h = clip(h, high=9.0) + math.sqrt(self.notes["a"]) * len(text.format(1))\n    return F.relu(h) + float(np.sqrt(4.0))\n',
    "return_annotation": 'def forward(self, x, text="{}", limit=3.0) -> np.save("/nowhere/r", np.ones(1)):\n    """Scale what exceeds the limit."""\n    h = self.lin(x)\n    for part in self.parts:\n        h = part(h)\n    h = torch.where(h.abs().max() > limit, h / self.scale, h)\n    h = clip(h, high=9.0) + math.sqrt(self.notes["a"]) * len(text.format(1))\n    return F.relu(h) + float(np.sqrt(4.0))\n',
    "np_sqrt_out_where": 'def forward(self, x, text="{}", limit=3.0):\n    """Scale what exceeds the limit."""\n    h = self.lin(x)\n    for part in self.parts:\n        h = part(h)\n    h = torch.where(h.abs().max() > limit, h / self.scale, h)\n    h = clip(h, high=9.0) + math.sqrt(self.notes["a"]) * len(text.format(1))\n    return F.relu(h) + float(np.sqrt(4.0, out=np.memmap("/nowhere/m", mode="w+", shape=())))\n',
    "await_turn": 'async def forward(self, x, text="{}", limit=3.0):\n    """Scale what exceeds the limit."""\n    h = self.lin(x)\n    for part in self.parts:\n        h = part(h)\n    h = torch.where(h.abs().max() > limit, h / self.scale, h)\n    await clip(h)\n    h = clip(h, high=9.0) + math.sqrt(self.notes["a"]) * len(text.format(1))\n    return F.relu(h) + float(np.sqrt(4.0))\n',
    "semicolon_second_def": 'def forward(self, x, text="{}", limit=3.0):\n    """Scale what exceeds the limit."""\n    h = self.lin(x)\n    for part in self.parts:\n        h = part(h)\n    h = torch.where(h.abs().max() > limit, h / self.scale, h)\n    h = clip(h, high=9.0) + math.sqrt(self.notes["a"]) * len(text.format(1))\n    return F.relu(h) + float(np.sqrt(4.0))\n\nnp.save("/nowhere/two", np.ones(1))\n',
    "second_function": 'def forward(self, x, text="{}", limit=3.0):\n    """Scale what exceeds the limit."""\n    h = self.lin(x)\n    for part in self.parts:\n        h = part(h)\n    h = torch.where(h.abs().max() > limit, h / self.scale, h)\n    h = clip(h, high=9.0) + math.sqrt(self.notes["a"]) * len(text.format(1))\n    return F.relu(h) + float(np.sqrt(4.0))\n\ndef extra():\n    return np.load("/nowhere/file")\n',
    "coding_cookie": '# -*- coding: utf-7 -*-\ndef forward(self, x, text="{}", limit=3.0):\n    """Scale what exceeds the limit."""\n    h = self.lin(x)\n    for part in self.parts:\n        h = part(h)\n    h = torch.where(h.abs().max() > limit, h / self.scale, h)\n    h = h + 0  # +AAo-np.save("/nowhere/c", np.ones(1))\n    h = clip(h, high=9.0) + math.sqrt(self.notes["a"]) * len(text.format(1))\n    return F.relu(h) + float(np.sqrt(4.0))\n',
}

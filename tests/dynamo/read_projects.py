"""Small projects whose inputs and settings a person finds by reading: the name, the files, the example that is found.

The whole is made in one process by `test_read_inputs.py`, so each project is as small as it can be.
"""

from __future__ import annotations

from typing import NamedTuple


class Read(NamedTuple):
    files: dict[str, str]
    origin: str
    text: str
    """A part of the example's text."""


_HEAD = "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n"
_SETTINGS = '{"data": {"path": "x"}, "model": {"ins": [6, 4], "outs": [4, 2], "act": "tanh"}}'
_MADE = "Net(SimpleNamespace(ins=[6, 4], outs=[4, 2], act='tanh'))(torch.randn("
_LAYERS = f"""{_HEAD}
class Net(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in zip(cfg.ins, cfg.outs)])
        self.act = {{"relu": torch.relu, "tanh": torch.tanh}}[cfg.act]
    def forward(self, x):
        for layer in self.layers:
            x = self.act(layer(x))
        return x
"""
_NAMED = _LAYERS.replace("self, cfg", "self, ins, outs, act").replace("cfg.", "")
_STATED = f"""{_HEAD}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.width = 6
        self.register_buffer("bias", torch.zeros(6, 3))
    def forward(self, frames, order, weight):
        TEXT
        joined = frames.sum(dim=3) @ self.bias
        return (joined[:, order] * weight[:, None]).sum()
"""
_COMMAND_LINE = """
import argparse, json
from types import SimpleNamespace
from model import Net
def main(args):
    with open(args.config) as f:
        text = f.read()
    settings = json.loads(text)
    net = Net(SimpleNamespace(**settings["model"]))
parser = argparse.ArgumentParser()
parser.add_argument("-c", "--config", required=True)
main(parser.parse_args())
"""


def _unfolding(form: str) -> str:
    """A file of YAML in which each line stands for nine times the one before."""
    lines = (f"a{n}: &a{n} {form.format(', '.join([f'*a{n - 1}'] * 9))}" for n in range(1, 24))
    return "\n".join(("a0: &a0 {lol: 1}", *lines))


UNFOLDING = {"aliases": _unfolding("[{}]"), "merged keys": _unfolding("{{<<: [{}]}}"), "itself": "&a [*a, *a]"}

PROJECTS: dict[str, Read] = {
    "settings that only the command line names": Read(
        {"model.py": _LAYERS, "train.py": _COMMAND_LINE, "configs/small.json": _SETTINGS}, "as in train.py", _MADE
    ),
    "settings that no script hands on": Read(
        {"model.py": _LAYERS, "a.json": '{"ins": [1], "act": "relu"}', "b.json": _SETTINGS, "package.json": _SETTINGS},
        "as in b.json",
        _MADE,
    ),
    "parameters that are keys of a file": Read(
        {"model.py": _NAMED, "conf.yaml": "net: {ins: [6, 4], outs: [4, 2], act: tanh, lr: 0.1}"},
        "as in conf.yaml",
        "Net([6, 4], [4, 2], 'tanh')(torch.randn(",
    ),
    "a file that unfolds to gigabytes is beside the one": Read(
        {"model.py": _NAMED, "arch.yaml": UNFOLDING["aliases"], "conf.yaml": "{ins: [6, 4], outs: [4, 2], act: tanh}"},
        "as in conf.yaml",
        "Net([6, 4], [4, 2], 'tanh')(torch.randn(",
    ),
    "text of an unknown file is no settings": Read(
        {
            "model.py": f"{_HEAD}class Net(nn.Linear):\n    def __init__(self, n):\n        super().__init__(n, 2)\n",
            "train.py": "from model import Net\nwords = open(input()).read().split()\nnet = Net(len(words))\n",
            "configs/small.json": _SETTINGS,
        },
        "synthesised",
        "Net(16)(torch.randn(",
    ),
    "a docstring in brackets": Read(
        {
            "model.py": _STATED.replace(
                "TEXT", '"""\n        frames: what was seen, [B, T, width, S]\n        weight: [T, 3]\n        """'
            )
        },
        "synthesised",
        ", 6, ",
    ),
    "a docstring of parameters": Read(
        {
            "model.py": _STATED.replace(
                "TEXT", '""":param frames: a tensor of dimension (batch_size, steps, width, n)\n        """'
            )
        },
        "synthesised",
        ", 6, ",
    ),
    "a comment": Read(
        {"model.py": _STATED.replace("TEXT", "# frames: (b, t, width, 9), weight below\n        # weight: (t, 3)")},
        "synthesised",
        ", 6, 9)",
    ),
    "what a call leaves open in its data": Read(
        {
            "model.py": f"""{_HEAD}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.layer = nn.Embedding(9, 4), nn.Linear(12, 4)
    def forward(self, batch):
        return self.words(batch["ids"]).sum(1) + self.layer(batch["more"]) * batch["scale"]
""",
            "train.py": """
import torch
from model import Net
net = Net()
for item in open_data():
    net({"ids": item.ids, "more": item.more, "scale": torch.ones(1), "name": item.name})
""",
        },
        "as in train.py",
        "Net()({'ids': torch.randint(0, 9, (2, 5)), 'more': torch.randn(2, 12), 'scale': torch.rand(1)",
    ),
    "a dimension that is squeezed is one": Read(
        {
            "model.py": f"""{_HEAD}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(7, 2)
    def forward(self, x, lengths):
        lengths, order = lengths.squeeze(1).sort(descending=True)
        return self.layer(x[order]) * lengths[:, None]
"""
        },
        "synthesised",
        "Net()(torch.randn(2, 7), torch.randint(1, 6, (2, 1)))",
    ),
    "a setting that another class compares with what there is": Read(
        {
            "model.py": f"""{_HEAD}
class Act(nn.Module):
    def __init__(self, kind, table):
        super().__init__()
        self.kind, self.table = kind, table
    def forward(self, x):
        if self.kind == "one" or self.kind == "two":
            return x @ self.table
        elif self.kind == "three":
            return x @ self.table.t()
        raise NotImplementedError(f"no {{self.kind}}")
class Net(nn.Module):
    def __init__(self, n, act, table):
        super().__init__()
        self.act = Act(act, table)
        self.layer = nn.Linear(n, 3)
    def forward(self, x):
        return self.layer(self.act(x))
"""
        },
        "synthesised",
        "', torch.randn(16, 16))(torch.randn(2, 16))",
    ),
    "settings that are handed on by name": Read(
        {
            "model.py": f"""{_HEAD}
class Inner(nn.Module):
    def __init__(self, *, dim, depth):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(dim, dim) for _ in range(depth)])
class Net(nn.Module):
    def __init__(self, *, tokens, dim, **kwargs):
        super().__init__()
        self.words, self.inner = nn.Embedding(tokens, dim), Inner(dim=dim, **kwargs)
    def forward(self, x):
        x = self.words(x)
        for layer in self.inner.layers:
            x = layer(x)
        return x
"""
        },
        "synthesised",
        "Net(tokens=16, dim=16, depth=2)(torch.randint(0, 16, (2, 5)))",
    ),
    "a size that is folded into another": Read(
        {
            "model.py": f"""{_HEAD}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(6, 2, 3)
    def forward(self, frames):
        b, t, c, h, w = frames.shape
        pairs = torch.cat([frames[:, 1:], frames[:, :-1]], 2)
        return self.conv(pairs.reshape(-1, 2 * c, h, w))
"""
        },
        "synthesised",
        ", 3, ",
    ),
    "data whose attributes are read": Read(
        {
            "model.py": f"""{_HEAD}
def total(batch):
    return sum(getattr(batch, name).sum() for name in ("a", "b"))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
    def forward(self, batch):
        return self.layer(batch.x) * total(batch)
""",
            "train.py": "import torch\nfrom model import Net\nnet = Net()\nnet({'x': torch.ones(3, 4)})\n",
        },
        "as in train.py",
        "Net()(SimpleNamespace(x=torch.rand(3, 4), a=",
    ),
    "a dimension that a call names, behind a layer": Read(
        {
            "model.py": f"""{_HEAD}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(8, 8)
    def forward(self, queries, table):
        heads = torch.cat(torch.split(self.q(queries), 4, dim=2), dim=0)
        return heads.sum() + torch.split(table, 4, dim=3)[0].sum()
"""
        },
        "synthesised",
        "Net()(torch.randn(2, 5, 8), torch.randn(",
    ),
    "a number of each sample": Read(
        {
            "model.py": f"""{_HEAD}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.kinds = nn.Linear(4, 6), nn.Embedding(5, 6)
    def forward(self, batch):
        return self.layer(batch["x"]) + self.kinds(batch["kind"])
""",
            "train.py": """
import torch
from torch.utils.data import DataLoader, Dataset
from model import Net
class Rows(Dataset):
    def __init__(self, path):
        self.rows = torch.load(path)
    def __len__(self):
        return len(self.rows)
    def __getitem__(self, i):
        row = self.rows[i]
        return {"x": row["x"].float(), "kind": int(row["kind"])}
net = Net()
for batch in DataLoader(Rows("rows.pt"), batch_size=8):
    net(batch)
""",
        },
        "as in train.py",
        "'kind': torch.randint(1, 2, (2,))",
    ),
    "a text in an index is nothing to compare with": Read(
        {
            "model.py": f"""{_HEAD}
CFG = {{"pad": 0}}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(9, 4)
    def forward(self, ids):
        return self.words(ids) * (ids != CFG["pad"]).long()[..., None]
"""
        },
        "synthesised",
        "Net()(torch.randint(0, 9, (2, 5)))",
    ),
    "indices of as many dimensions as what is made of them": Read(
        {
            "model.py": f"""{_HEAD}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gaps = nn.Embedding(7, 4)
    def forward(self, gaps):
        return torch.split(self.gaps(gaps), 2, dim=3)[0]
"""
        },
        "synthesised",
        "Net()(torch.randint(0, 7, (2, 5, 5)))",
    ),
    "settings that a function keeps for the whole module, from a file in a folder that is not known": Read(
        {
            "model.py": _LAYERS,
            "run.py": """
import argparse, json, os
from model import Net
settings = None
class Settings(dict):
    def __init__(self, *args):
        super().__init__(*args)
        self.__dict__ = self
def use():
    return Net(settings)
def main():
    global settings
    args = argparse.ArgumentParser()
    args.add_argument("--weights", required=True)
    path = os.path.join(os.path.dirname(args.parse_args().weights), "small.json")
    with open(path) as file:
        settings = Settings(json.loads(file.read()))
    use()
main()
""",
            "a/config.json": '{"ins": [9, 8], "outs": [8, 7], "act": "relu"}',
            "b/small.json": '{"ins": [6, 4], "outs": [4, 2], "act": "tanh"}',
        },
        "as in run.py",
        _MADE,
    ),
    "sizes in an array, places in order": Read(
        {
            "model.py": f"""{_HEAD}
class Net(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.bags = nn.ModuleList([nn.EmbeddingBag(int(rows[n]), width, mode="sum") for n in range(rows.size)])
    def forward(self, starts, words):
        return sum(bag(words[n], starts[n]) for n, bag in enumerate(self.bags))
""",
            "train.py": """
import numpy as np
import torch
from model import Net
rows = np.fromstring("64-48-40-32-24-20", dtype=int, sep="-")
net = Net(rows, 4)
starts, words = [], []
for size in rows:
    starts.append(torch.tensor([0, 3, 4, 5, 7, 9, 16, 17, 18, 19]))
    words.append(torch.from_numpy(np.random.randint(0, size, 20).astype(np.int64)))
net(starts, words)
""",
        },
        "as in train.py",
        "Net(torch.tensor([64, 48, 40, 32, 24, 20], dtype=torch.int64).numpy(), 4)([torch.tensor([0, 3, 4, 5, ",
    ),
    "dimensions that are made into one": Read(
        {
            "model.py": f"""{_HEAD}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.layer = nn.Conv2d(3, 2, 3), nn.Conv1d(6, 2, 1)
    def forward(self, clips, later, rows):
        B, T = clips.shape[:2]
        seen = self.conv(clips.flatten(0, 1)).view(B, T, -1)
        b, t, c, h, w = later.shape
        more = self.conv(later.view(b * t, c, h, w)).mean() + self.layer(rows.reshape(-1, *rows.shape[2:])).mean()
        return seen.mean() + more
"""
        },
        "synthesised",
        "Net()(torch.randn(2, 5, 3, 32, 32), torch.randn(2, 5, 3, 32, 32), torch.randn(2, 5, 6, 32))",
    ),
    "an argument that only settings make needful": Read(
        {
            "model.py": f"""{_HEAD}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.speakers = nn.Conv1d(4, 6, 3), nn.Embedding(5, 6)
    def forward(self, x, who=None):
        return self.layer(x) + self.speakers(who).unsqueeze(-1)
"""
        },
        "synthesised",
        "Net()(torch.randn(2, 4, 32), who=torch.randint(0, 5, (2",
    ),
    "an argument is kept before it is indexed": Read(
        {
            "model.py": f"""{_HEAD}
class Net(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.sizes = sizes
        self.build()
    def build(self):
        self.first = nn.Linear(self.sizes[0], self.sizes[-1])
    def forward(self, x):
        return self.first(x)
"""
        },
        "synthesised",
        "](torch.randn(2, ".replace("]", "])"),
    ),
    "models in a table, one behind the other": Read(
        {
            "model.py": f"""{_HEAD}
class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Conv2d(3, 4, 3, 2, 1), nn.Conv2d(4, 6, 3, 2, 1)
    def forward(self, x):
        x = self.one(x)
        return [x, self.two(x)]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Conv2d(6, 4, 1)
    def forward(self, seen):
        return seen[0] + F.interpolate(self.up(seen[-1]), scale_factor=2)
""",
            "train.py": """
import model
class Trainer:
    def __init__(self, loader):
        self.models = {"body": model.Body(), "head": model.Net()}
        self.loader = loader
    def step(self, images):
        seen = self.models["body"](images)
        return self.models["head"](seen)
""",
        },
        "as in train.py",
        "Net()([torch.randn(2, 4, 16, 16), torch.randn(2, 6, 8, 8)])",
    ),
    "differences of indices that are indices": Read(
        {
            "model.py": f"""{_HEAD}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.places, self.widths = nn.Embedding(50, 4), nn.Embedding(50, 4)
    def forward(self, places):
        return self.places(places[:, :, 0]) + self.widths(places[:, :, 1] - places[:, :, 0])
"""
        },
        "synthesised",
        "torch.randint(0, 1, (2, ",
    ),
    "images in a list or in one": Read(
        {
            "model.py": f"""{_HEAD}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
    def forward(self, images):
        sides = [max(each) for each in zip(*[list(image.shape) for image in images])]
        joined = torch.zeros(len(images), *sides)
        for place, image in zip(joined, images):
            place[:, : image.shape[1], : image.shape[2]].copy_(image)
        return self.conv(joined)
"""
        },
        "synthesised",
        "Net()(torch.randn(2, 3, 32, 32))",
    ),
    "a table of words whose names are the file's, a number of actions": Read(
        {
            "model.py": f"""{_HEAD}
FIRST, LAST = "<first>", "<last>"
class Net(nn.Module):
    def __init__(self, words, n_act):
        super().__init__()
        self.words = nn.Embedding(len(words), n_act)
        self.words.weight.data[words[LAST], :] = 0
        self.first = words[FIRST]
    def forward(self, ids):
        return self.words(ids + self.first)
"""
        },
        "synthesised",
        "Net({'<last>': 0, '<first>': 1, ",
    ),
}

"""Inputs from the project itself: small projects in the style of what people publish, and what must not happen."""

from __future__ import annotations

import atexit
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import pytest

from graphmend.dynamo.worker.project import files, sites

from .conftest import Checks

pytestmark = [pytest.mark.torch, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")]

HERE = Path(__file__).parent
PROJECTS = sorted((HERE / "people").glob("*.txt"))
UNFIT = {"swin", "scheduler", "boxloss"}
"""Modules whose sizes no file of their projects tells, nor an error message; one that takes a class of a
script; a loss of predictions and targets that only a detector gives.
"""


@lru_cache(maxsize=1)
def _process() -> subprocess.Popen[str]:
    """The one that fits all of them: it has torch, and forks for each."""
    command = [sys.executable, str(HERE / "fit_projects.py")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(process.kill)
    return process


def fitted(text: Path, folder: Path, *names: str) -> dict[str, dict[str, str]]:
    process = _process()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps([str(text), str(folder), *names]) + "\n")
    process.stdin.flush()
    lines: list[str] = []
    while (line := process.stdout.readline()).strip():
        lines.append(line)
    found = [json.loads(line) for line in lines if line.startswith('{"name"')]
    assert found, lines
    return {line["name"]: line for line in found}


@pytest.mark.many
@pytest.mark.parametrize("text", PROJECTS, ids=lambda path: path.stem)
def test_modules_of_small_projects_run_without_set_up(text: Path, tmp_path: Path) -> None:
    found = fitted(text, tmp_path)
    failed = {name: line["problem"] for name, line in found.items() if "problem" in line}
    assert failed.keys() <= UNFIT, failed
    assert len(found) > 8


def one(tmp_path: Path, files: dict[str, str], target: str = "model.py:Net") -> dict[str, str]:
    parts = "".join(f"--- {path}\n{content}\n" for path, content in files.items())
    text = tmp_path / "projects.txt"
    text.write_text(f"===== it {target}\n{parts}")
    return fitted(text, tmp_path / "unpacked")["it"]


NET = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self, opt):
        super().__init__()
        self.layer = nn.Linear(opt.width * 4, opt.classes)
    def forward(self, x, scale):
        return self.layer(x) * scale
"""


def test_defaults_of_a_command_line_and_a_batch_of_a_loader(tmp_path: Path) -> None:
    train = """
import argparse, torch
from torch.utils.data import Dataset, DataLoader
from model import Net
class Points(Dataset):
    def __init__(self, opt): self.opt = opt
    def __len__(self): return 1000
    def __getitem__(self, i): return torch.randn(self.opt.width * 4), torch.tensor(1.0)
parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=512)
parser.add_argument("--classes", type=int, default=10)
opt = parser.parse_args()
net = Net(opt).cuda()
for x, scale in DataLoader(Points(opt), batch_size=64):
    net(x.cuda(), scale.unsqueeze(1))
"""
    found = one(tmp_path, {"model.py": NET, "train.py": train})
    assert found["origin"] == "as in train.py"
    assert found["text"] == "Net(SimpleNamespace(width=64, classes=10))(torch.randn(2, 256), torch.rand(2, 1))"


def test_settings_of_a_file_that_a_call_names(tmp_path: Path) -> None:
    train = """
import json
from types import SimpleNamespace
from model import Net
def load(path):
    with open(path) as f:
        return SimpleNamespace(**json.load(f)["model"])
if __name__ == "__main__":
    net = Net(load("settings.json"))
"""
    settings = '{"model": {"width": 12, "classes": 3, "comment": "small"}}'
    found = one(tmp_path, {"model.py": NET, "train.py": train, "settings.json": settings})
    assert found["text"].startswith("Net(SimpleNamespace(width=12, classes=3))(torch.randn(2, 48)")


README = """
# Net

```bash
python train.py model.py Net
```

1. As a module:

   ``` python
   from types import SimpleNamespace
   from model import Net
   net = Net(SimpleNamespace(width=3, classes=5))
   !ls
   ```
```python
>>> net(torch.randn(6, 12), 0.25).shape
torch.Size([6, 5])
```
```py
net(  # and so on
```
"""


def test_a_page_shows_how_a_module_is_used(tmp_path: Path) -> None:
    page = README.replace(">>> net", ">>> import torch\n>>> net")
    found = one(tmp_path, {"model.py": NET, "README.md": page})
    expected = "Net(SimpleNamespace(width=3, classes=5))(torch.randn(6, 12), 0.25)"
    assert (found.get("text"), found.get("origin")) == (expected, "as in README.md"), found


def test_pages_take_no_room_from_code(tmp_path: Path) -> None:
    docs, code = tmp_path / "docs", tmp_path / "src"
    docs.mkdir()
    code.mkdir()
    for number in range(files.MOST_FILES + 1):
        (docs / f"{number}.md").write_text("")
    for name in ("net.py", "net.ipynb"):
        (code / name).write_text("")
    found = [os.path.relpath(path, tmp_path) for path in files.walk(str(tmp_path), files.WITH_CODE)]
    assert found[:2] == [os.path.join("src", "net.ipynb"), os.path.join("src", "net.py")]
    assert len(found) == 2 + files.MOST_PAGES
    assert set(map(os.path.dirname, found[2:])) == {"docs"}


def test_a_file_imports_what_lies_in_the_folder_of_its_project(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": "[project]\nname = 'it'\n",
        "layers/common.py": "WIDTH = 6\n",
        "layers/net.py": NET.replace("class Net", "from layers.common import WIDTH\nclass Net"),
        "main.py": "from layers.net import Net\nfrom types import SimpleNamespace as S\nNet(S(width=2, classes=3))",
    }
    found = one(tmp_path, files, "layers/net.py:Net")
    assert found.get("origin") == "as in main.py", found


def test_sizes_that_code_of_the_model_demands_are_kept(tmp_path: Path) -> None:
    """A smaller image would not do: the model's own text says 128 * 128."""
    net = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.layer = nn.Linear(128 * 128, classes)
    def forward(self, x):
        if x.shape[-1] != 128:
            raise ValueError("images of 128")
        return self.layer(x.flatten(1))
"""
    found = one(
        tmp_path,
        {"model.py": net, "demo.py": "import torch\nfrom model import Net\nNet(7)(torch.randn(4, 1, 128, 128))\n"},
    )
    assert found == {"name": "it", "text": "Net(7)(torch.randn(4, 1, 128, 128))", "origin": "as in demo.py"}


def test_nothing_of_the_project_is_run(tmp_path: Path) -> None:
    """The files around are read: no file is written, no program started, nothing fetched, and `sys.path` stays."""
    train = """
import os, sys, shutil, subprocess, pathlib, urllib.request
import numpy as np
import torch
from model import Net
HERE = pathlib.Path(__file__).parent
open("opened.txt", "w").write("x")
pathlib.Path("path.txt").write_text("x")
(HERE / "touched.txt").touch()
os.makedirs("made")
os.system("touch system.txt")
subprocess.run(["touch", "run.txt"])
np.save("saved.npy", np.zeros(3))
np.zeros(3).tofile("tofile.bin")
torch.save({}, "saved.pt")
shutil.copy("model.py", "copied.py")
sys.path.insert(0, "/nowhere")
print("printed")
class Opt:
    width = 5
    classes = 2
    def __init__(self):
        open("constructed.txt", "w")
net = Net(Opt())
torch.save(net.state_dict(), "state.pt")
"""
    found = one(tmp_path, {"model.py": NET, "train.py": train})
    assert "problem" not in found
    files = {path.name for path in (tmp_path / "unpacked" / "it").iterdir()}
    assert files - {"__pycache__"} == {"model.py", "train.py"}


@pytest.mark.parametrize(
    "train",
    [
        "from model import Net\nwhile True:\n    Net(1)\n",
        "from model import Net\ndef f(n):\n    return f(n + 1)\nf(0)\nNet(f)\n",
        "from model import Net\nx = [0] * 10**12\ny = 10**10**10\nNet(x, *y)\n",
        "from model import *\nfrom .model import Net as N\nclass Net(Net): pass\nNet()\n",
        "from model import Net\nd = {}\nd['d'] = d\nNet(d)\nl = []\nl.append(l)\nNet(l)\n",
        "from model import Net\nNet(**{1: 2})\nNet(*None)\nNet.x.y = 3\ndel Net\n",
        "from model import (\n",
    ],
    ids=["endless", "recursive", "huge", "circular", "cyclic", "nonsense", "broken"],
)
def test_odd_code_around_a_module(tmp_path: Path, train: str) -> None:
    found = one(tmp_path, {"model.py": NET, "train.py": train})
    assert found.get("text", "").startswith("Net("), found


def test_the_report_says_where_inputs_come_from(checks: Checks, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(NET)
    (tmp_path / "tests").mkdir()
    (tmp_path / "pyproject.toml").write_text("")
    test = """
import pytest, torch
from types import SimpleNamespace
from model import Net
@pytest.fixture
def net(): return Net(SimpleNamespace(width=2, classes=3))
@pytest.mark.parametrize("batch, scale", [(4, 0.5), (1, 2.0)])
def test_net(net, batch, scale):
    assert net(torch.randn(batch, 8), scale).shape == (batch, 3)
"""
    (tmp_path / "tests" / "test_net.py").write_text(test)
    report = checks(tmp_path / "model.py")
    (target,) = report.targets
    assert target.origin == "as in tests/test_net.py"
    assert target.inputs == "Net(SimpleNamespace(width=2, classes=3))(torch.randn(4, 8), 0.5)"
    assert target.graphs == 1


HEAD = "import torch\nfrom torch import nn\n"
LINEAR = HEAD + (
    "class Net(nn.Module):\n    def __init__(self, cfg):\n        super().__init__()\n"
    "        self.layer = nn.Linear(cfg.width * 4, cfg.classes)\n"
    "    def forward(self, x):\n        assert x.min() >= 0, 'images from 0 to 1'\n        return self.layer(x)\n"
)
SETTINGS = """
import yaml
from model import Net
class Settings(dict):
    __getattr__ = dict.__getitem__
def load(path):
    with open(path) as f:
        return Settings({k: Settings(v) for k, v in yaml.safe_load(f).items()})
if __name__ == "__main__":
    net = Net(load("base.yml").net)
"""
TABLE = """
import torch
import model
import blocks
def build(name, width):
    return model.__dict__[name](getattr(blocks, "small").width, vars(blocks)["classes"], globals()["vocabulary"])
vocabulary = 50257
net = build("Net", 7)
net(torch.randn(batches().size(0), 12), torch.randint(0, vocabulary, (64, 512)))
"""
LOOKED_UP = HEAD + (
    "class Net(nn.Module):\n    def __init__(self, width, classes, vocabulary):\n        super().__init__()\n"
    "        self.layer, self.words = nn.Linear(width, classes), nn.Embedding(vocabulary, classes)\n"
    "    def forward(self, x, ids):\n        return self.layer(x).sum() + self.words(ids)\n"
)
PARTS = HEAD + (
    "from dataclasses import dataclass\n"
    "@dataclass\nclass ImageCfg:\n    width: int = 24\n    side: int = 8\n"
    "@dataclass\nclass TextCfg:\n    width: int = 20\n    words: int = 100\n"
    "class Net(nn.Module):\n    def __init__(self, dim, image_cfg, text_cfg, vectors):\n        super().__init__()\n"
    "        if isinstance(image_cfg, dict):\n            image_cfg = ImageCfg(**image_cfg)\n"
    "        self.image = nn.Linear(image_cfg.side * image_cfg.side, dim)\n"
    "        self.words = nn.Embedding(text_cfg.words, dim)\n"
    "        self.known = nn.Embedding.from_pretrained(vectors)\n        self.size = vectors.size(1)\n"
    "    def forward(self, image, ids):\n        return self.image(image.flatten(1)).sum() + self.words(ids).sum()\n"
)


SCALES = HEAD + (
    "kinds = {'relu': nn.ReLU, 'silu': nn.SiLU}\n"
    "class Net(nn.Module):\n    def __init__(self, args):\n        super().__init__()\n"
    "        self.layer, self.act = nn.Linear(args.scale[0] * 4, args.width), kinds[args.train.act]()\n"
    "    def forward(self, x):\n        return self.act(self.layer(x))\n"
)
LIST = """
import argparse
from types import SimpleNamespace
from model import Net
parser = argparse.ArgumentParser()
parser.add_argument("--scale", default="3+2")
parser.add_argument("--width", default=7)
args = parser.parse_args()
args.scale = list(map(lambda part: int(part), args.scale.split("+")))
for name in vars(args):
    vars(args)[name] = vars(args)[name] or None
args.train = SimpleNamespace(act=next(filter(lambda kind: kind != "relu", ["relu", "silu"])))
net = Net(args)
"""
FILTERED = LIST.replace('kind != "relu"', 'None if kind == "relu" else kind')
FLAT = HEAD + (
    "class Net(nn.Module):\n    def __init__(self, classes=4):\n        super().__init__()\n"
    "        self.conv, self.head = nn.Conv2d(3, 8, 3, 16, 1), nn.Linear(8 * 49, classes)\n"
    "    def forward(self, x):\n        return self.head(self.conv(x).flatten(1))\n"
)
DEEP = HEAD + (
    "class Net(nn.Module):\n    def __init__(self, depth=7):\n        super().__init__()\n"
    "        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), *(nn.MaxPool2d(2) for _ in range(depth)))\n"
    "    def forward(self, x):\n        return self.body(x)\n"
)
RANKED = HEAD + (
    "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.layer = nn.Linear(6, 4)\n"
    "    def forward(self, x):\n        y = self.layer(x)\n"
    "        if y.ndim != 4:\n"
    "            raise RuntimeError(f'Wrong shape: expected 4 dims. Received {y.ndim}-dim tensor.')\n"
    "        return y\n"
)
CROSSED = HEAD + (
    "class Net(nn.Module):\n    def __init__(self, fields):\n        super().__init__()\n"
    "        self.mix = nn.Conv1d(fields * fields, 8, 1)\n"
    "    def forward(self, x):\n"
    "        y = torch.einsum('bhd,bmd->bhmd', x, x)\n        return self.mix(y.flatten(1, 2))\n"
)
LENGTHS = HEAD + (
    "from parts.masks import mask\n"
    "class Net(nn.Module):\n    def __init__(self, size):\n        super().__init__()\n"
    "        self.words = nn.Embedding(size, 8)\n"
    "    def forward(self, ids, lengths, longest):\n"
    "        y = self.words(ids)\n        return y.sum() + mask(lengths, longest)\n"
)
MASK = "import torch\ndef mask(lengths, most):\n    return torch.arange(0, most)[None] < lengths[:, None]\n"


@pytest.mark.parametrize(
    ("files", "begins"),
    [
        (
            {"model.py": SCALES, "main.py": LIST},
            "Net(SimpleNamespace(scale=[3, 2], width=7, train=SimpleNamespace(act='silu')",
        ),
        (
            {"model.py": SCALES, "main.py": FILTERED},
            "Net(SimpleNamespace(scale=[3, 2], width=7, train=SimpleNamespace(act='silu')",
        ),
        ({"model.py": FLAT}, "Net()(torch.randn(2, 3, 98, 98))"),
        ({"model.py": DEEP}, "Net()(torch.randn(2, 3, 128, 128))"),
        ({"model.py": RANKED}, "Net()(torch.randn(2, 5, 5, 6))"),
        ({"model.py": CROSSED, "run.py": "from model import Net\nNet(6)"}, "Net(6)(torch.randn(2, 6,"),
        ({"model.py": LENGTHS, "parts/masks.py": MASK}, "Net(16)(torch.randint(0, 16, (2, 5)), torch."),
        (
            {"model.py": LINEAR, "main.py": SETTINGS, "base.yml": "net: {width: 12, classes: 3}\n"},
            "Net(SimpleNamespace(width=12, classes=3))(torch.rand(",
        ),
        (
            {
                "model.py": LOOKED_UP,
                "main.py": TABLE,
                "blocks.py": "class small:\n    width = 12\nclasses = 5\n",
            },
            "Net(12, 5, 393)(torch.randn(2, 12), torch.randint(0, 393, (64, 64)))",
        ),
        ({"model.py": PARTS}, "Net(16, ImageCfg("),
    ],
    ids=[
        "settings that functions make",
        "settings that a filter leaves",
        "an image that is flattened",
        "an image that becomes too small",
        "a rank that einops asks for",
        "each field with each",
        "a length that is counted to",
        "a dictionary whose keys are attributes",
        "names looked up in tables",
        "settings of a part",
    ],
)
def test_ways_of_people_to_hand_settings_over(tmp_path: Path, files: dict[str, str], begins: str) -> None:
    found = one(tmp_path, files)
    assert found.get("text", "").startswith(begins), found


MASKED = """
import torch
def masked(x, keep, scale=1.0):
    return x[keep].sum() * scale
"""


def test_a_function_is_called_as_the_project_calls_it(tmp_path: Path) -> None:
    """Compiled or not, and through functions that others call."""
    train = """
import torch
from model import masked
def step(width):
    fast = torch.compile(masked)
    x = torch.randn(6, width)
    return fast(x, x[:, 0] > 0.5, scale=2.0)
def epoch(width):
    return step(width)
"""
    main = "from train import epoch\nepoch(12)\n"
    found = one(tmp_path, {"model.py": MASKED, "train.py": train, "main.py": main}, "model.py:masked")
    assert found["origin"] == "as in main.py"
    assert found["text"] == "masked(torch.randn(6, 12), torch.ones(6, dtype=torch.bool), scale=2.0)"


OBJECT = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, 2)
    def forward(self, x, labels=None):
        y = self.layer(x)
        return y if labels is None else nn.functional.cross_entropy(y, labels)
    def scaled(self, x, by):
        return self.layer(x) * by
net = Net(3)
"""


def test_an_object_is_called_as_the_project_calls_its_class(tmp_path: Path) -> None:
    """With what gives it most first: the labels, too. Its own sizes stay."""
    train = """
import torch
from model import net
net(torch.randn(5, 3))
net(torch.randn(4, 3), torch.randint(0, 2, (4,)))
"""
    found = one(tmp_path, {"model.py": OBJECT, "train.py": train}, "model.py:net")
    assert found["text"] == "net(torch.randn(4, 3), labels=torch.randint(0, 2, (4,)))"
    assert found["origin"] == "as in train.py"


def test_the_search_for_callers_ends_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project on a slow disk: each file takes a tenth of the time that there is. What was found by then counts."""
    clock, read = [0.0], []

    def slow(path: str, text_of: Callable[[str], str] = files.text_of) -> str:
        clock[0] += sites.MOST_SECONDS / 10
        read.append(os.path.basename(path))
        return text_of(path)

    for number in range(100):
        (tmp_path / f"train{number:02}.py").write_text("import torch\nfrom z import masked\nmasked(torch.ones(3), 1)\n")
    (tmp_path / "z.py").write_text(MASKED)
    for name in ("monotonic", "process_time"):
        monkeypatch.setattr(time, name, lambda: clock[0])
    monkeypatch.setattr(files, "text_of", slow)
    found = sites.calls(str(tmp_path / "z.py"), "masked", lambda size: size)
    assert len(read) < 20
    assert {path for _, path in found} <= {"train00.py", "train01.py", "train02.py", "train03.py", "train04.py"}
    assert found


PAIRED = """
import torch
from torch import nn
class Paired(nn.Module):
    def __init__(self, rows, pairs):
        super().__init__()
        self.bias = nn.Linear(pairs, rows)
    def forward(self, m, z, steps):
        b, s, r, c = m.shape
        mixed = torch.einsum("bsic,bijc->bsjc", m, self.bias(z).view(b, r, r, c))
        return mixed[:, steps], z.permute(0, 2, 1, 3)
"""
NETWORK = """
import torch
from torch import nn
from paired import Paired
class Network(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.rows, self.pairs = nn.Embedding(10, width), nn.Linear(2 * width, 3)
        self.blocks = nn.ModuleList([Paired(width, 3) for _ in range(2)])
    def forward(self, ids):
        m = self.rows(ids)
        one = m[:, 0]
        n = one.shape[1]
        z = self.pairs(torch.cat([one[:, :, None].expand(-1, n, n, -1), one[:, None].expand(-1, n, n, -1)], -1))
        for block in self.blocks:
            m, z = block(m, z, torch.arange(m.shape[1]))
        return m.mean()
"""
RUN = "import torch\nfrom network import Network\nNetwork()(torch.randint(0, 10, (2, 4, 6)))\n"


COLUMNS = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.columns = nn.ModuleList([nn.Embedding(n, 8) for n in (9, 3, 5, 2)])
        self.mix = nn.BatchNorm1d(8)
    def forward(self, graphs):
        rows, h = graphs.rows, 0
        for i in range(rows.shape[1]):
            h = h + self.columns[i](rows[:, i])
        return self.mix(h)
"""
STRIDED = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self, hps):
        super().__init__()
        self.hps = hps
        self.front = nn.Sequential(nn.Conv2d(1, 4, 3, 2, 1), nn.ReLU(), nn.Conv2d(4, 4, 3, 2, 1))
        self.out = nn.Linear(4 * (hps["n_bands"] // 4), 3)
    def forward(self, sound):
        {says}
        x = self.front(sound.transpose(1, 2).unsqueeze(1))
        b, c, t, f = x.size()
        return self.out(x.transpose(1, 2).reshape(b, t, c * f))
"""
HPS = "from model import Net\nnet = Net(dict(n_bands=80))\n"
TAGS = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self, tags=3):
        super().__init__()
        self.tags = tags
        self.first, self.moves = nn.Parameter(torch.zeros(tags)), nn.Parameter(torch.zeros(tags, tags))
    def forward(self, scores, path):
        '''how likely. scores (B, L, K), path (B, L)'''
        if scores.size(2) != self.tags:
            raise ValueError("expected %d tags" % self.tags)
        scores, path = scores.transpose(0, 1), path.transpose(0, 1)
        rows = torch.arange(path.shape[1])
        s = self.first[path[0]]
        for i in range(1, path.shape[0]):
            s = s + self.moves[path[i - 1], path[i]] + scores[i, rows, path[i]]
        return s.mean()
"""


@pytest.mark.parametrize(
    ("files", "begins"),
    [
        ({"model.py": COLUMNS}, "Net()(SimpleNamespace(rows=torch.randint(0, 2, (2, 4))"),
        ({"model.py": STRIDED.format(says='"""sound: (B, n_bands, T)"""'), "run.py": HPS}, "Net({'n_bands': "),
        ({"model.py": STRIDED.format(says="pass"), "run.py": HPS}, "Net({'n_bands': "),
        ({"model.py": TAGS}, "Net()("),
    ],
    ids=["columns of categories", "a size of the settings in words", "strides", "shapes in one line"],
)
def test_sizes_that_make_inputs_fit_together(tmp_path: Path, files: dict[str, str], begins: str) -> None:
    found = one(tmp_path, files)
    assert found.get("text", "").startswith(begins), found


def test_a_part_is_called_as_the_module_that_owns_it_calls_it(tmp_path: Path) -> None:
    found = one(tmp_path, {"paired.py": PAIRED, "network.py": NETWORK, "run.py": RUN}, "paired.py:Paired")
    assert found["origin"] == "as blocks.0 of Network is called", found
    assert found["text"].startswith("Network()(")


def test_no_file_that_does_something_is_imported_for_an_owner(tmp_path: Path) -> None:
    network = NETWORK + "raise SystemExit(open('imported', 'w').close())\n"
    found = one(tmp_path, {"paired.py": PAIRED, "network.py": network}, "paired.py:Paired")
    assert "problem" in found
    assert not list(tmp_path.rglob("imported"))


HEADS = """
import torch
from torch import nn
class Backbone(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.down = nn.Conv2d(3, width, 3, stride=2, padding=1)
    def forward(self, images):
        return {"fine": images.mean(1, keepdim=True), "coarse": self.down(images)}
class Heads(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.kinds, self.masks = nn.Conv2d(width, classes, 1), nn.Conv2d(width, classes, 1)
    def forward(self, features):
        return self.kinds(features["coarse"]).mean((2, 3)), self.masks(features["coarse"])
"""
LOSS = """
import torch
import torch.nn.functional as F
from torch import nn
class Loss(nn.Module):
    def forward(self, outputs, labels, seg):
        kinds, masks = outputs
        assert masks.shape[1] == kinds.shape[1] == 5
        dice = (masks.softmax(1) * F.one_hot(seg[:, 0], 5).permute(0, 3, 1, 2)).sum()
        return F.cross_entropy(kinds, labels) + F.cross_entropy(masks, seg.squeeze(1)) - dice
"""


def test_a_loss_is_given_what_the_model_before_it_gives(tmp_path: Path) -> None:
    """Several heads, behind a backbone; the loader's data is not there, so targets are found by what errors say."""
    train = """
import torch
from heads import Backbone, Heads
from loss import Loss
from somewhere import loader
def main():
    backbone, heads, loss = Backbone(8).cuda(), Heads(8, 5).cuda(), Loss()
    for images, labels, seg in loader:
        kinds, masks = heads(backbone(images.cuda()))
        loss([kinds, masks], labels, seg).backward()
main()
"""
    found = one(tmp_path, {"heads.py": HEADS, "loss.py": LOSS, "train.py": train}, "loss.py:Loss")
    assert "problem" not in found, found
    assert re.search(r"\[torch.randn\(2, 5\), torch.randn\(2, 5, (\d+), \1\)\].*\(2, 1, \1, \1\)", found["text"]), found
    assert found["origin"] == "as in train.py"


@pytest.mark.parametrize(
    "used",
    ["DataLoader(torch.load(path), 4, collate_fn=collate)", "loader"],
    ids=["data-not-there", "loader-not-there"],
)
def test_samples_are_what_the_function_that_joins_them_says(tmp_path: Path, used: str) -> None:
    model = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self, width=80):
        super().__init__()
        self.layer, self.words = nn.Linear(width, 4), nn.Embedding(100, 4)
    def forward(self, batch):
        feats, lens, tokens = batch
        assert len(feats) == len(lens) == len(tokens) and feats.shape[1] == lens.max()
        return self.layer(feats).sum(1) + self.words(tokens).sum(1)
"""
    train = f"""
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
from model import Net
def collate(samples):
    '''Joins a list of (feat [T, 80], token ids [L]), the longest first.'''
    samples = sorted(samples, key=lambda s: -len(s[0]))
    feats = pad_sequence([s[0] for s in samples], batch_first=True)
    lens = torch.tensor([len(s[0]) for s in samples])
    return feats, lens, pad_sequence([s[1] for s in samples], batch_first=True)
def train(loader, path):
    net = Net()
    for step, (feats, lens, tokens) in enumerate({used}):
        net([feats, lens, tokens]).sum().backward()
"""
    found = one(tmp_path, {"model.py": model, "train.py": train})
    assert "problem" not in found, found
    assert re.search(r"\[torch.randn\(2, (\d+), 80\), torch.randint", found["text"]), found


def test_a_comment_says_what_is_looped_over(tmp_path: Path) -> None:
    train = """
from types import SimpleNamespace
from model import Net
from nowhere import batches_of
def train(path):
    net = Net(SimpleNamespace(width=12, classes=3))
    # points: (B, 48), scale (B,)
    for step, (points, scale) in enumerate(batches_of(path)):
        net(points.cuda(), scale.unsqueeze(1)).mean().backward()
"""
    found = one(tmp_path, {"model.py": NET, "train.py": train})
    assert "torch.randn(2, 48)" in found.get("text", ""), found
    assert found["origin"] == "as in train.py"


def test_outputs_are_reshaped_and_looped_over_before_a_loss_gets_them(tmp_path: Path) -> None:
    train = """
from heads import Backbone, Heads
from loss import Loss
from somewhere import loader
backbone, heads, loss = Backbone(8), Heads(8, 5), Loss()
for images, seg in loader:
    kinds, masks = heads(backbone(images))
    masks = masks.permute(0, 2, 3, 1).contiguous().view(-1, 5)
    (loss(masks, seg.view(-1)) + sum(loss(each, seg) for each in [kinds])).backward()
"""
    loss = """
import torch.nn.functional as F
from torch import nn
class Loss(nn.Module):
    def forward(self, logits, seg):
        assert logits.dim() == 2 and logits.shape[1] == 5 and len(logits) > 100
        return F.cross_entropy(logits, seg)
"""
    found = one(tmp_path, {"heads.py": HEADS, "loss.py": loss, "train.py": train}, "loss.py:Loss")
    assert re.search(r"torch.randn\((\d+), 5\), torch.randint\(0, 2, \(\1,\)\)", found.get("text", "")), found


def test_sides_that_steps_have_made_smaller_are_made_to_fit(tmp_path: Path) -> None:
    model = """
from torch import nn
class Net(nn.Module):
    def __init__(self, parts=6):
        super().__init__()
        self.parts = parts
        self.base = nn.Sequential(nn.Conv2d(3, 8, 7, 4, 3), nn.Conv2d(8, 8, 3, 4, 1))
    def forward(self, x):
        f = self.base(x)
        assert f.size(2) % self.parts == 0, "height must be divisible by parts"
        return f.view(*f.shape[:2], self.parts, -1).mean(-1)
"""
    found = one(tmp_path, {"model.py": model})
    assert "torch.randn(2, 3, 96, 96)" in found.get("text", ""), found


def test_a_class_behind_the_name_of_its_module_is_followed_to_who_makes_it(tmp_path: Path) -> None:
    experiment = """
import model
class Experiment:
    def __init__(self, opt):
        self.net = model.Net(opt).float()
"""
    train = """
import argparse
from experiment import Experiment
parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=12)
parser.add_argument("--classes", type=int, default=3)
Experiment(parser.parse_args())
"""
    found = one(tmp_path, {"model.py": NET, "experiment.py": experiment, "train.py": train})
    assert found.get("text", "").startswith("Net(SimpleNamespace(width=12, classes=3))"), found
    assert found["origin"] == "as in train.py"


MOLECULES = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.atoms, self.bonds, self.edge = nn.Embedding(9, 8), nn.Embedding(4, 3), nn.Linear(20, 8)
    def forward(self, data):
        h, (row, col) = self.atoms(data.z), data.edge_index
        far = (data.pos[row] - data.pos[col]).norm(dim=1, keepdim=True)
        m = self.edge(torch.cat([h[row], h[col], far, self.bonds(data.edge_attr)], 1))
        h = h.index_add(0, row, m)
        return h.new_zeros(int(data.batch.max()) + 1, 8).index_add(0, data.batch, h)
"""
REGIONS = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(10, 4)
    def forward(self, feats, boxes, num_boxes):
        absent = torch.arange(feats.shape[1])[None] >= num_boxes[:, None]
        return self.layer(torch.cat([feats, boxes], -1)).masked_fill(absent[..., None], 0).sum(1)
"""


@pytest.mark.parametrize(
    ("model", "shown"),
    [(MOLECULES, "z=torch.randint(0, 9, (2,))"), (REGIONS, "torch.randint(1, 6, (2,))")],
    ids=["one-index-a-node", "counts-by-name"],
)
def test_indices_and_counts_are_one_each(tmp_path: Path, model: str, shown: str) -> None:
    found = one(tmp_path, {"model.py": model})
    assert shown in found.get("text", ""), found


def test_what_is_passed_though_it_has_a_default_is_made_up(tmp_path: Path) -> None:
    model = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4)
    def forward(self, x, lengths=None):
        h = self.layer(x)
        if lengths is not None:
            h = h * (torch.arange(h.shape[1])[None] < lengths[:, None])[..., None]
        return h
"""
    train = """
import torch
from model import Net
from nowhere import lengths_of
net, x = Net(), torch.randn(2, 6, 8)
net(x, lengths_of(x))
"""
    found = one(tmp_path, {"model.py": model, "train.py": train})
    assert re.search(r"torch.randn\(2, 6, 8\), lengths=torch.randint", found.get("text", "")), found

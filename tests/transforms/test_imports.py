"""New code refers to torch and the runtime in the file's own way."""

from __future__ import annotations

import pytest
from by_hand import facts_at

from graphmend.analysis.syntax.source import Source
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.text_edits import apply
from graphmend.transforms.mend import mend_all


def named(
    head: str, qualified: str = "torch.where", module: str = "torch", body: str = "def f(x):\n    return x\n"
) -> tuple[str, str]:
    """(how the name is spelled, the text with the imports that it needs)."""
    _, facts = facts_at(head + body, "return x", {})
    imports = Imports(facts)
    name = imports.name(qualified, module)
    return name, apply(facts.source.text, imports.edits(), facts.source)


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("import torch\n", "torch.where"),
        ("import torch as th\n", "th.where"),
        ("from torch import where\n", "where"),
        ("from torch import where as w\n", "w"),
        ("import torch.nn as nn\nimport torch\n", "torch.where"),
    ],
)
def test_an_import_that_is_there_is_used(head: str, name: str) -> None:
    spelled, text = named(head)
    assert spelled == name
    assert text == head + "def f(x):\n    return x\n"


def test_parents_are_used() -> None:
    assert named("import torch.nn.functional as F\n", "torch.nn.functional.relu")[0] == "F.relu"


@pytest.mark.parametrize(
    ("head", "after"),
    [
        ("", "import torch\n"),
        ('"""Doc."""\n', '"""Doc."""\nimport torch\n'),
        ("from torch import Tensor\n", "from torch import Tensor\nimport torch\n"),
        (
            "from __future__ import annotations\nimport os\n\nx = 1\n",
            "from __future__ import annotations\nimport os\nimport torch\n\nx = 1\n",
        ),
        ("import os\nfrom .a import b\n", "import os\nimport torch\nfrom .a import b\n"),
        ("import os\r\n", "import os\r\nimport torch\r\n"),
    ],
)
def test_a_missing_import_is_added_once(head: str, after: str) -> None:
    name, text = named(head)
    assert name == "torch.where"
    assert text == after + "def f(x):\n    return x\n"


def test_a_name_that_means_something_else_is_avoided() -> None:
    name, text = named("import torch\n", body="def f(x, torch):\n    return x\n")
    assert name == "_torch.where"
    assert "import torch as _torch" in text


def test_the_runtime() -> None:
    name, text = named("import torch\n", "graphmend.runtime.emit", "graphmend.runtime")
    assert name == "graphmend.runtime.emit"
    assert text.startswith("import torch\nimport graphmend.runtime\n")
    assert named("from graphmend.runtime import emit\n", "graphmend.runtime.emit", "graphmend.runtime")[0] == "emit"


@pytest.mark.parametrize(
    "binding",
    [
        "def graphmend(x):\n    return x * 2",
        "graphmend = 3",
        "for graphmend in range(2):\n    pass",
        "from os.path import *",
        "def other():\n    global graphmend\n    graphmend = 1",
    ],
)
def test_a_module_that_binds_the_name_gets_the_import_under_another(binding: str) -> None:
    text = f"import torch\n\n\n{binding}\n\n\n@torch.compile\ndef case(x):\n    print(x)\n    return x\n"
    after = mend_all(Source(text), unsafe=False).source.text
    assert "import graphmend.runtime as _graphmend_runtime" in after
    assert "_graphmend_runtime.emit(print, x)" in after
    assert mend_all(Source(after), unsafe=False).source.text == after

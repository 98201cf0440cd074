"""New code refers to torch and the runtime in the file's own way."""

from __future__ import annotations

import pytest
from by_hand import facts_at

from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.text_edits import apply


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
    "head",
    [
        "graphmend = 3\n",
        "if True:\n    graphmend = 3\n",
        "try:\n    pass\nexcept OSError as graphmend:\n    pass\n",
        "with open('f') as graphmend:\n    pass\n",
        "for graphmend in ():\n    pass\n",
        "while (graphmend := 0):\n    pass\n",
        "graphmend: int = 3\n",
        "a, (b, *graphmend) = 1, (2, 3)\n",
        "class graphmend:\n    pass\n",
        "def graphmend():\n    pass\n",
        "import os as graphmend\n",
        "from os import path as graphmend\n",
        "try:\n    import os as graphmend\nexcept ImportError:\n    pass\n",
        "from os.path import *\n",
        "def sets():\n    global graphmend\n    graphmend = 3\n",
        "class A:\n    def sets(self):\n        global graphmend\n        import os as graphmend\n",
        "match 3:\n    case [graphmend]:\n        pass\n",
    ],
)
def test_a_name_of_the_users_own_is_respected(head: str) -> None:
    name, text = named(head, "graphmend.runtime.emit", "graphmend.runtime", body="def f(x):\n    return x\n")
    assert name == "_graphmend_runtime.emit"
    assert "import graphmend.runtime as _graphmend_runtime\n" in text


def test_the_new_name_is_one_that_the_file_does_not_have() -> None:
    head = "graphmend = 3\n_graphmend_runtime = 4\n"
    assert named(head, "graphmend.runtime.emit", "graphmend.runtime")[0] == "_graphmend_runtime_2.emit"


def test_an_import_of_the_same_package_is_no_other_meaning() -> None:
    for head in ("import graphmend.importer\n", "import graphmend.importer\nfrom os.path import *\n"):
        name, text = named(head, "graphmend.runtime.emit", "graphmend.runtime")
        assert name == "graphmend.runtime.emit"
        assert "import graphmend.runtime\n" in text


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("import torch\ntorch = object()\n", "_torch.where"),
        ("import torch\ndel torch\n", "_torch.where"),
        ("import torch\nclass torch: ...\n", "_torch.where"),
        ("import torch\ndef sets():\n    global torch\n    torch = 3\n", "_torch.where"),
        ("try:\n    from os import where\nexcept ImportError:\n    from torch import where\n", "torch.where"),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None\n", "torch.where"),
        ("if 1:\n    import torch\nelse:\n    class torch: ...\n", "torch.where"),
        ("import torch\nfrom os.path import *\n", "torch.where"),
    ],
)
def test_an_import_whose_name_is_bound_again_is_not_used(head: str, name: str) -> None:
    assert named(head)[0] == name

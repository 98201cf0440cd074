"""Mended text is written as its project writes its code."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from graphmend.analysis.rules import RULES
from graphmend.analysis.syntax.source import Source
from graphmend.transforms.mend import mend_all
from graphmend.transforms.style.finish import finished
from graphmend.transforms.style.folding import fold
from graphmend.workspace.code_style import code_style

LAB = Path(__file__).parents[1] / "cli" / "lab"
RUNTIME = "graphmend.runtime"


def styled(before: str, after: str, line_length: int = 88, formatted: bool = True) -> str:
    return finished(before, after, "m.py", line_length=line_length, formatted=formatted)


def added(head: str, use: str = "graphmend.runtime.emit(print, 1)") -> str:
    """What becomes of a file with these imports when a mend uses the runtime."""
    before = f"{head}\n\ndef f():\n    print(1)\n"
    last = max(
        (
            i
            for i, line in enumerate(head.splitlines(), 1)
            if line.startswith(("import", "from")) and "." not in line[:6]
        ),
        default=0,
    )
    lines = head.splitlines(keepends=True)
    after = "".join([*lines[:last], f"import {RUNTIME}\n", *lines[last:]]) + f"\n\ndef f():\n    {use}\n"
    return styled(before, after).partition("\n\ndef ")[0]


@pytest.mark.parametrize(
    ("head", "result"),
    [
        ("import torch\n", "import torch\nfrom graphmend.runtime import emit\n"),
        (
            "import os\n\nimport torch\nfrom torch import nn\n\nfrom .b import c\n",
            "import os\n\nimport torch\nfrom graphmend.runtime import emit\nfrom torch import nn\n\nfrom .b import c\n",
        ),
        (
            "import math\n\nfrom einops import rearrange\nimport torch\n",
            "import math\n\nfrom einops import rearrange\nfrom graphmend.runtime import emit\nimport torch\n",
        ),
        ("import torch\nimport os\n", "import torch\nimport os\nfrom graphmend.runtime import emit\n"),
        ('"""Doc."""\nimport os\n', '"""Doc."""\nimport os\n\nfrom graphmend.runtime import emit\n'),
    ],
)
def test_the_runtime_stands_where_a_sorter_puts_it(head: str, result: str) -> None:
    assert added(head) == result


def test_a_name_that_the_file_has_is_not_taken() -> None:
    head = "import torch\n\nemit = 3\n"
    assert added(head) == "import graphmend.runtime\nimport torch\n\nemit = 3\n"


def test_an_import_that_is_there_is_extended() -> None:
    before = (
        "import torch\nfrom graphmend.runtime import emit\n\n\ndef f(x):\n    emit(print, x)\n    print(x.item())\n"
    )
    after = before.replace("import torch\n", f"import torch\nimport {RUNTIME}\n").replace(
        "print(x.item())", f"{RUNTIME}.emit(print, {RUNTIME}.later(x.item))"
    )
    text = styled(before, after)
    assert "import torch\nfrom graphmend.runtime import emit, later\n\n" in text
    assert "    emit(print, later(x.item))\n" in text


def test_a_statement_of_which_nothing_is_left_is_dropped() -> None:
    before = "def f(x, m):\n    x = x[m]\n    y = y\n    if x:\n        x = x[0]\n    return x.sum()\n"
    after = "def f(x, m):\n    x = x\n    y = y\n    if x:\n        x = x\n    return (x * m).sum()\n"
    assert styled(before, after) == "def f(x, m):\n    y = y\n    if x:\n        x = x\n    return (x * m).sum()\n"


def test_line_ends_and_other_lines_stay() -> None:
    before = "import torch\r\n\r\n\r\ndef f(x):\r\n    y  =  [ 1,2 ]\r\n    print(x)\r\n"
    after = before.replace("import torch\r\n", f"import torch\r\nimport {RUNTIME}\r\n")
    after = after.replace("print(x)", f"{RUNTIME}.emit(print, 'a text that is long', 'and another one', x)")
    text = styled(before, after, 40)
    assert "    y  =  [ 1,2 ]\r\n" in text
    assert "\n" not in text.replace("\r\n", "")
    assert "    emit(\r\n        print,\r\n" in text


@pytest.mark.parametrize(
    "text",
    [
        "value = function(first_argument, second_argument, third_argument, fourth)",
        "value = function(first_argument)(second_argument, third_argument, fourth_one)",
        "value = first_operand + second_operand * third_operand - the_fourth_operand_",
        "assert torch.isfinite(the_first_value_of_many), 'the first value is not finite'",
        "assert the_first_condition and the_second_condition and the_third_condition_",
        "function(*arguments, key=lambda a, b: a + b, another_key=[x for x, y in pairs_])",
        "function(not first_condition, a is not b, -1, **{'key': value, 'other': values_})",
        "value = {'a': first_function(first_argument), 'b': second_function(second_one)}",
        "a_name, another_name = function(first_argument, second_argument, third_value_)",
        "function(first, 'a text of many strings that stand ' 'next to each other in one call ' 'of a function')",
        "value = first_value if condition_of_a_name(argument) else the_second_value_here",
        "value = (first + second).method(argument)[index_of_many, index_of_others].other()",
        "load = torch.zeros(x.size(-1), dtype=int, device=d).scatter_add(0, x.long(), ones)",
        "x = f(a ** 2, b ** c, d[0] ** 2, some_name_here, some_name_there, and_another_)",
        "emit_when(loss.isnan().any(), print, lambda: ('the loss is not a number', loss.item()))",
        "emit_when(loss.isnan().any(), print, lambda: ('the loss is ' + str(loss.item()),), end='')",
        "emit_when(the_flag, print, lambda: the_name_of_a_tensor.the_name_of_an_attribute_.another)",
        "emit_when(the_flag, print, lambda a, b: first_operand_of_it + second_operand_of_it + b)",
        "emit_when(the_flag, print, lambda: [x.item() for x in the_list_of_tensors_here if x > 1])",
        "value = function(another(first_argument, second_argument, third_argument, fourth_one))",
        "value = function([an_item.clone() if an_item else None for an_item in the_list_of_them_])",
        "emit_when(a, print, lambda: (x,), (y,), a_long_name_of_an_argument, another_long_name_)",
        "value = first + torch.tensor([1.0, 2.0], device=n.device, dtype=torch.float64)[n.reshape(1)].squeeze(0)",
        "value = torch.stack(ts).index_select(0, torch.stack([t.sum() for t in ts]).argmax()).squeeze(0) + 1",
        "value = [t * len(t) - first[:3] for t in x.new_zeros(shape).index_add(0, lengths, x).to(dtype).unbind()]",
        "value = [first_operand_of_many, second_operand_of_many, third_operand_] <= the_limit_of_it",
        "value = first_operand_of_many_operands @ weights[torch.arange(batch_size_of_it), positions_]",
        "x = f(\n    a,\n    b,\n)",
        "x = f(\n    aaaaaaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb, cccccccccc\n)",
    ],
)
@pytest.mark.parametrize("width", [50, 72])
def test_statements_are_folded_as_ruff_folds_them(text: str, width: int, tmp_path: Path) -> None:
    assert "\n".join(fold(text, 0, width)) + "\n" == by_ruff([text], width, tmp_path)[0]


def by_ruff(statements: list[str], width: int, folder: Path) -> list[str]:
    files = [folder / f"m{number}.py" for number in range(len(statements))]
    for file, statement in zip(files, statements, strict=True):
        file.write_text(statement + "\n")
    command = [sys.executable, "-m", "ruff", "format", "-q", "--isolated", "--config", f"line-length={width}"]
    subprocess.run([*command, "--config", "format.quote-style='preserve'", *files], check=True)
    return [file.read_text() for file in files]


class Written:
    """Statements at random, of what mends write: calls, chains of methods, indices, operators, comprehensions."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.kinds = (self.name, self.name, self.call, self.chain, self.chain, self.index, self.list)

    def statement(self) -> str:
        value = self.value(3)
        return self.random.choice([f"y = {value}", f"assert_all({value})", f"self.total += {value}"])

    def value(self, depth: int) -> str:
        if depth <= 0 or self.random.random() < 0.55:
            return self.operand(depth)
        left, right, other = (self.operand(depth) for _ in range(3))
        operator = self.random.choice(["+", "-", "*", "/", "@", "&", "|", "==", "<="])
        joined = f"{left} {operator} {right}"
        inner = f"({self.operand(depth)} + {self.operand(depth)}) * {right}"
        loop = f"[{self.value(depth - 1)} for t in {right}]"
        return self.random.choice([joined, joined, f"{left} if {other} else {right}", loop, inner])

    def operand(self, depth: int) -> str:
        return self.name() if depth <= 0 else self.random.choice(self.kinds)(depth)

    def name(self, depth: int = 0) -> str:
        return self.random.choice(["x", "mask", "hidden_states", "self.layer", "torch.float32", "8", "'a text'"])

    def call(self, depth: int, least: int = 0) -> str:
        function = self.random.choice(["f", "torch.where", "torch.zeros_like", "self.norm"])
        return f"{function}({self.arguments(depth, least)})"

    def arguments(self, depth: int, least: int = 0) -> str:
        given = [self.value(depth - 1) for _ in range(self.random.randint(least, 3))]
        return ", ".join(given + [f"dim={self.operand(depth - 1)}"] * (self.random.random() < 0.3))

    def chain(self, depth: int) -> str:
        start = self.random.choice(["x", "self.layer", self.call(depth, 2)])
        method = self.random.choice(["sum", "reshape", "index_select", "masked_fill"])
        links = [f".{method}({self.arguments(depth - 1)})", f".{method}(0)", "[0]", ".T"]
        return start + "".join(self.random.choices(links, [4, 2, 1, 1], k=self.random.randint(1, 3)))

    def index(self, depth: int) -> str:
        return f"hidden_states[{self.value(depth - 1)}]"

    def list(self, depth: int) -> str:
        return f"[{', '.join(self.value(depth - 1) for _ in range(self.random.randint(1, 3)))}]"


@pytest.mark.parametrize("width", [60, 88, 120])
def test_any_statement_is_folded_as_ruff_folds_it(width: int, tmp_path: Path) -> None:
    written = Written(width)
    statements = [text for text in (written.statement() for _ in range(600)) if len(text) > width]
    assert len(statements) > 100
    for text, expected in zip(statements, by_ruff(statements, width, tmp_path), strict=True):
        assert "\n".join(fold(text, 0, width)) + "\n" == expected


@pytest.mark.parametrize(
    ("header", "result"),
    [
        ("if (a_condition if of_this else of_that):", "if a_condition if of_this else of_that:"),
        (
            "with (the_first_context() if a_condition_holds else the_second_one()):",
            "with (\n        the_first_context()\n        if a_condition_holds\n        else the_second_one()\n    ):",
        ),
    ],
)
def test_headers_are_folded(header: str, result: str) -> None:
    before = "def f():\n    if x:\n        pass\n"
    assert styled(before, f"def f():\n    {header}\n        pass\n", 60) == f"def f():\n    {result}\n        pass\n"


@pytest.mark.parametrize("line_length", [80, 100])
def test_what_is_formatted_and_sorted_stays_so(tmp_path: Path, line_length: int) -> None:
    ruff = [sys.executable, "-m", "ruff"]
    folder = Path(shutil.copytree(LAB, tmp_path / "lab"))
    (folder / "pyproject.toml").write_text(f"[tool.ruff]\nline-length = {line_length}\n")
    for rule in RULES:
        for number, example in enumerate(rule.invalid):
            (folder / f"{rule.code}_{number}.py").write_text(example)
    subprocess.run([*ruff, "check", "-q", "--fix", "--select", "I", folder], check=True)
    subprocess.run([*ruff, "format", "-q", folder], check=True)
    mended = 0
    for path in folder.rglob("*.py"):
        before = path.read_text()
        after = mend_all(Source(before, str(path)), unsafe=True)
        style = code_style(path)
        assert style.line_length == line_length
        text = finished(before, after.source.text, str(path), line_length=line_length, formatted=style.formatted)
        mended += after.changed
        path.write_text(text)
    assert mended > 20
    subprocess.run([*ruff, "format", "--check", folder], check=True, cwd=folder)
    subprocess.run([*ruff, "check", "--select", "I", folder], check=True, cwd=folder)


@pytest.mark.parametrize(
    ("files", "length", "formatted"),
    [
        ({}, 88, False),
        ({"pyproject.toml": "[tool.ruff]\nline-length = 100\n"}, 100, True),
        ({"pyproject.toml": "[tool.black]\nline-length = 79\n"}, 79, True),
        ({"pyproject.toml": "[tool.ruff.lint]\n"}, 88, True),
        ({"ruff.toml": "line-length = 60\n", "pyproject.toml": "[tool.black]\nline-length = 79\n"}, 60, True),
        (
            {".editorconfig": "root = true\n[*.{py,pyi}]\nmax_line_length = 110\n[*.md]\nmax_line_length = 5\n"},
            110,
            False,
        ),
        ({"pyproject.toml": "[tool.ruff\nline-length = 100\n"}, 88, False),
        ({"pyproject.toml": "[tool.ruff]\nline-length = 'wide'\n"}, 88, True),
        ({".editorconfig": "[*.py]\nmax_line_length = off\n"}, 88, False),
        ({".editorconfig": "[[[[\n\x00"}, 88, False),
    ],
)
def test_the_style_of_a_project(tmp_path: Path, files: dict[str, str], length: int, formatted: bool) -> None:
    (tmp_path / ".editorconfig").write_text("root = true\n")
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    style = code_style(tmp_path / "package" / "m.py")
    assert (style.line_length, style.formatted) == (length, formatted)

"""Text of a newer Python is told from text that is wrong: one notice names both versions."""

from __future__ import annotations

import sys

import pytest

from graphmend.analysis.incremental.document import IncrementalAnalysis
from graphmend.analysis.syntax.newer_syntax import newer_syntax
from graphmend.analysis.syntax.source import Source


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("except* ValueError:", "3.11"),
        ("x = values[*index]", "3.11"),
        ("x = values[0, *index, ...]", "3.11"),
        ("def f(x, *args: *Ts) -> None:", "3.11"),
        ("    *args: *tuple[int, ...],", "3.11"),
        ("class Box[T = int]:", "3.13"),
        ("def first[T: (int, str) = int](x: T = 0):", "3.13"),
        ("type Pair[T, U = dict[str, T]] = tuple[T, U]", "3.13"),
        ("type Pair[T] = tuple[T, T]", "3.12"),
        ("def first[T](x: T = 0) -> T:", "3.12"),
        ("def first[T](x: list[T]) -> T:", "3.12"),
        ("    async def first[T](self, x: T) -> T:", "3.12"),
        ("class Box[T: int]:", "3.12"),
        ("""x = f"{names["a"]}" """, "3.12"),
        ("""x = f'{', '.join(names)}' """, "3.12"),
        (r"""x = f"{'\n'.join(names)}" """, "3.12"),
        ("""q = t"select {column}" """, "3.14"),
        ("    except TypeError, ValueError:", "3.14"),
    ],
)
def test_a_newer_form_names_both_versions(line: str, version: str) -> None:
    said = newer_syntax(line, running=(3, 10))
    assert said is not None
    assert f"Python {version}" in said
    assert "3.10" in said
    assert newer_syntax(line, running=tuple(map(int, version.split(".")))) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "line",
    [
        "type(x) = 3",
        "x = values[*",
        "x = [*first, *second] +",
        "return [*first] second",
        "lambda *args: *args",
        "x = 3 if values[a * b] else",
        "class Box(object, key=3",
        "x = values[0",
        'print(f"{x}", "{y}"',
        """print(f"a {x} b" + '{c}' "d}")]""",
        'x = f"{names[',
        'print(f"{a.',
        "except (A, B) as",
        'left "a" "b',
        'x = first"a"',
    ],
)
def test_a_line_that_is_wrong_or_unfinished_is_no_news(line: str) -> None:
    assert newer_syntax(line, running=(3, 10)) is None


TEXTS = [
    ("3.11", "try:\n    pass\nexcept* ValueError:\n    pass\n"),
    ("3.11", "x = a[*b]\n"),
    ("3.11", "def f(*args: *Ts):\n    pass\n"),
    ("3.12", "type A = int\n"),
    ("3.12", "def f[T](x: T = 0) -> T:\n    return x\n"),
    ("3.12", "class A[T]:\n    pass\n"),
    ("3.12", 'x = f"{d["a"]}"\n'),
    ("3.12", "x = f'{'\\n'.join(d)}'\n"),
    ("3.13", "class A[T = int]:\n    pass\n"),
    ("3.13", "def f[T = int](x: T):\n    pass\n"),
    ("3.13", "type A[T = int] = list[T]\n"),
    ("3.14", 'x = t"{a}"\n'),
    ("3.14", "try:\n    pass\nexcept A, B:\n    pass\n"),
]


@pytest.mark.parametrize(("version", "text"), TEXTS)
def test_the_parser_that_runs_either_knows_a_form_or_the_notice_names_both(version: str, text: str) -> None:
    """The versions are those of the language; `make test-pythons` holds them against each Python's own parser."""
    source = Source(text, "model.py")
    if sys.version_info >= tuple(map(int, version.split("."))):
        assert source.tree is not None
    else:
        assert source.tree is None
        assert source.problem is not None
        assert source.problem.newer
        here = "{}.{}".format(*sys.version_info)
        assert f"syntax of Python {version}, but graphmend runs on {here}" in source.problem.message


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python knows every form that is told apart")
def test_the_notice_reaches_whoever_checks() -> None:
    text = "import torch\n\nquery = t'{torch}'\n\ndef f(x):\n    return x\n"
    source = Source(text, "model.py")
    assert source.tree is None
    assert source.problem is not None
    assert source.problem.newer
    notice = IncrementalAnalysis("model.py").update(text).notice
    assert notice is not None
    assert notice.startswith("line 3: a template string")

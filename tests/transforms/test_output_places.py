"""Where output may happen inside a graph, and where it may not."""

from __future__ import annotations

import pytest

from graphmend.analysis.check import check
from graphmend.analysis.syntax.source import Source
from graphmend.transforms.fix import Refusal
from graphmend.transforms.mend import Mended, mend, mend_all

HEAD = "import functools, logging, warnings\nimport torch\nlog = logging.getLogger('output')\n"


def mended(text: str) -> Mended:
    return mend_all(Source(HEAD + text), unsafe=False)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "@torch.compile\ndef case(x):\n    try:\n        print('in')\n        y = x.reshape(7)\n"
            "    except RuntimeError:\n        y = x\n    return y\n",
            "`try`",
        ),
        (
            "@functools.lru_cache(None)\ndef once(m):\n    print(m)\n@torch.compile\n"
            "def case(x):\n    once('a')\n    return x\n",
            "keeps its results",
        ),
        (
            "def really(m):\n    print(m)\n@functools.cache\ndef once(m):\n    really(m)\n@torch.compile\n"
            "def case(x):\n    once('a')\n    return really(x)\n",
            "keeps its results",
        ),
        ("@torch.compile\ndef case(x):\n    log.log(level=30, msg='a')\n    return x\n", "by name"),
    ],
)
def test_output_stays_where_the_graph_would_change_it(text: str, reason: str) -> None:
    assert not mended(text).changed
    found = check(Source(HEAD + text))
    answers = [a for finding in found.findings for a in mend(finding, found.facts(finding))]
    assert any(reason in answer.reason for answer in answers if isinstance(answer, Refusal))


@pytest.mark.torch
@pytest.mark.parametrize(
    "statement",
    [
        "warnings.warn(UserWarning('careful'))",
        "warnings.warn(Own('careful', 2))",
        "print('{a}'.format(a=x.sum().item()))",
        "print('%(a)s' % {'a': x.sum().item()})",
        "print(x.tolist(), x.sum().item() + 1)",
    ],
)
def test_what_is_put_off_is_the_same_in_plain_python(
    statement: str, capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    torch = pytest.importorskip("torch")
    text = f"class Own(UserWarning):\n    pass\n@torch.compile\ndef case(x):\n    {statement}\n    return x\n"
    found = mended(text)
    assert found.changed
    said = []
    for version in (HEAD + text, found.source.text):
        names: dict[str, object] = {"__name__": "program"}
        exec(compile(version.replace("@torch.compile\n", ""), "model.py", "exec"), names)
        recwarn.clear()
        names["case"](torch.ones(2))  # type: ignore[operator]
        said.append((capsys.readouterr().out, [(w.category.__name__, str(w.message), w.filename) for w in recwarn]))
    assert said[0] == said[1]


def test_output_is_emitted_once() -> None:
    text = (
        "@torch.compile\ndef case(x):\n    if x.sum() > 0:\n        logging.getLogger('a').warning('positive')\n"
        "    return x\n"
    )
    found = mended(text)
    assert found.source.text.count("graphmend.runtime.emit") == 1
    assert mend_all(found.source, unsafe=True).source.text == found.source.text


@pytest.mark.parametrize(
    "use",
    [
        "return x, x + took",
        "return x * took",
        "z = x * took\n    return z",
        "x[0] = took",
        "x.add_(took)",
        "kept = []\n    kept.append(x * took)",
        "kept = []\n    kept.append(took)\n    if kept[0] > 9:\n        y = x",
        "x.took = took",
        "assert took < 9",
        "return x, 1.0 / took",
        "left = 9 % int(took)\n    return x, left",
    ],
)
def test_a_clock_does_not_stand_still_for_what_is_computed(use: str) -> None:
    text = "import time, torch\n@torch.compile\ndef case(x: torch.Tensor):\n    began = time.time()\n    y = x.exp()\n"
    used = Source(f"{text}    took = time.time() - began\n    {use}\n    return y\n")
    kept = Source(f"{text}    took = time.time() - began\n    print(took)\n    return y\n")
    assert not mend_all(used, unsafe=True).changed
    assert {answer.fix.rewrite for answer in mend_all(kept, unsafe=True).applied} == {"emit", "skip_value"}


def test_what_is_mended_at_once_leaves_nothing_for_another_time() -> None:
    """A clock that reaches the second of two lines that are written: the first one is no holder of its time."""
    text = (
        "import logging, time, torch\nlog = logging.getLogger(__name__)\n@torch.compile\ndef case(x: torch.Tensor):\n"
    )
    text += "    began = time.time()\n    if x.sum() > 0:\n        print('large', x.mean())\n    log.info('here')\n"
    text += "    log.info('took %.3f s', time.time() - began)\n    return x * 2\n"
    done = mend_all(Source(text), unsafe=True)
    assert done.source.text.count("is_compiling") == 2
    assert done.left == []


@pytest.mark.parametrize(
    ("use", "mended"), [("if now() > 9: y = x", False), ("y = x * now()", False), ("return x, now()", True)]
)
def test_a_clock_is_followed_to_those_who_call_for_it(use: str, mended: bool) -> None:
    clock = "import time, torch\ndef now():\n    return round(time.time(), 1)\n"
    text = f"{clock}@torch.compile\ndef case(x: torch.Tensor):\n    y = x\n    {use}\n    return y\n"
    assert mend_all(Source(text), unsafe=True).changed is mended


@pytest.mark.parametrize(
    ("follows", "caught", "mended"),
    [
        ("y = x @ w", "RuntimeError", False),
        ("y = x @ w", "(KeyError, Exception)", False),
        ("x -= 1; y = x", "RuntimeError", False),
        ("try: y = x @ w\n        except KeyError: y = x", "RuntimeError", False),
        ("y = x @ w", "KeyError", True),
        ("y = x", "RuntimeError", True),
    ],
)
def test_a_break_stays_where_its_try_would_not_see_what_the_graph_raises(
    follows: str, caught: str, mended: bool
) -> None:
    text = f"""\
import torch
@torch.compile
def case(x: torch.Tensor, w: torch.Tensor):
    try:
        n = x.sum().item()
        {follows}
    except {caught}:
        return x * 2
    return y * n
"""
    assert mend_all(Source(text), unsafe=True).changed is mended


@pytest.mark.parametrize(
    ("around", "behind"),
    [("with contextlib.suppress(RuntimeError):", ""), ("try:", "    finally:\n        SEEN.append(1)\n")],
)
@pytest.mark.parametrize(("follows", "mended"), [("y = x @ w", False), ("y = x", True)])
def test_a_break_stays_where_what_comes_behind_an_exception_would_not(
    around: str, behind: str, follows: str, mended: bool
) -> None:
    text = f"""\
import contextlib
import torch
SEEN = []
@torch.compile
def case(x: torch.Tensor, w: torch.Tensor):
    y = x
    {around}
        n = x.sum().item()
        {follows}
        y = y * n
{behind}    return y
"""
    assert mend_all(Source(text), unsafe=True).changed is mended

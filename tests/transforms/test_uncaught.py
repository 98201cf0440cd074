"""Who sees what a graph raises: a `try` and contexts around the break, and around the calls of its function."""

from __future__ import annotations

import textwrap

import pytest
from asked import offered

HEAD = "import contextlib\nimport torch\nfrom torch import Tensor\n\n"
BRANCH = "x.sum() * 2 if x.sum() > 1 else x.sum() * 3"


def module(body: str, *, top: str = "", inner: str = "") -> str:
    called = f"def inner(x: Tensor):\n{textwrap.indent(inner, '    ')}\n" if inner else ""
    return f"{HEAD}{top}\n{called}\n@torch.compile\ndef case(x: Tensor):\n{textwrap.indent(body, '    ')}\n"


RAISES, TOTAL = f"y = {BRANCH}\nreturn y.view(7)", f"return {BRANCH}"
CAUGHT = "try:\n    return {call}\nexcept {caught}:\n    return x"
OWN = """
@contextlib.contextmanager
def own():
    yield
"""


@pytest.mark.parametrize(
    "text",
    [
        module(CAUGHT.format(call="inner(x)", caught="RuntimeError"), inner=RAISES),
        module(CAUGHT.format(call="inner(x).view(7)", caught="(KeyError, Exception)"), inner=TOTAL),
        module("with contextlib.suppress(ValueError):\n    x = inner(x)\nreturn x", inner=RAISES),
        module("try:\n    y = inner(x)\nfinally:\n    print('done')\nreturn y", inner=RAISES),
        module(f"with own():\n    y = {BRANCH}\n    return y.view(7)", top=OWN),
        module("with own():\n    return inner(x)", top=OWN, inner=RAISES),
        module(CAUGHT.format(call="inner(x)", caught="AttributeError"), inner=f"y = {BRANCH}\nreturn y.foo"),
        module(
            CAUGHT.format(call="middle(x)", caught="RuntimeError"),
            top="def middle(x):\n    return inner(x)\n",
            inner=RAISES,
        ),
    ],
    ids=["try", "around", "suppress", "finally", "context", "context of the caller", "attribute", "two calls away"],
)  # fmt: skip
def test_what_no_handler_sees_is_named(text: str) -> None:
    fixes = offered(text)
    assert fixes
    assert all(fix.applicability == "unsafe" for fix in fixes)
    assert any(d.says.endswith("does not see") for fix in fixes for d in fix.differences)


@pytest.mark.parametrize(
    "text",
    [
        module(CAUGHT.format(call="inner(x)", caught="RuntimeError"), inner=TOTAL),
        module(CAUGHT.format(call="inner(x)", caught="KeyError"), inner=RAISES),
        module(CAUGHT.format(call="inner(x)", caught="AttributeError"), inner=f"y = {BRANCH}\nreturn y.mean()"),
        module(f"with torch.no_grad(), contextlib.nullcontext():\n    y = {BRANCH}\n    return y.view(7)"),
        module(RAISES) + "\n\ndef main(x):\n    try:\n        return case(x)\n    except RuntimeError:\n        pass\n",
    ],
    ids=["total", "other exceptions", "attributes that are there", "contexts of torch", "around the compiled call"],
)  # fmt: skip
def test_what_somebody_sees_is_safe(text: str) -> None:
    fixes = offered(text)
    assert any(fix.applicability == "safe" for fix in fixes)
    assert not [d for fix in fixes for d in fix.differences if d.kind == "exception"]


def test_the_context_that_may_see_is_named() -> None:
    body = f"with torch.no_grad(), own():\n    y = {BRANCH}\n    return y.view(7)"
    assert {d.says for fix in offered(module(body, top=OWN)) for d in fix.differences} >= {
        "what `y.view(7)` raises in a graph, `own()` does not see"
    }


@pytest.mark.parametrize("reader", ["locals()", "vars()", "eval('x')", "sys._getframe().f_locals"])
def test_names_that_are_read_as_data_stay(reader: str) -> None:
    text = module(f"y = {BRANCH}\nreturn y, {reader}").replace("import contextlib", "import sys", 1)
    assert offered(text) == []


ENTRIES = """
from collections import defaultdict
registry = {}
registry["a"] = defaultdict(list)
class Other:
    def __init__(self):
        self.x = defaultdict(list)
"""


@pytest.mark.parametrize("entry", ["x[0]", "x[0][1]"])
def test_a_tensor_makes_no_entries_whatever_has_its_name(entry: str) -> None:
    assert offered(module(f"return {entry} * 2 if x.sum() > 0 else {entry} * 3", top=ENTRIES))


@pytest.mark.parametrize("entry", ["registry['a']['k']", "other.x['k']"])
def test_what_makes_an_entry_is_not_selected(entry: str) -> None:
    text = module(f"return x * len({entry}) if x.sum() > 0 else x * 3", top=f"{ENTRIES}\nother = Other()")
    assert offered(text) == []


def test_output_with_the_names_of_a_function_is_emitted() -> None:
    fixes = offered(module("print('%(x)s' % locals())\nreturn x"))
    assert [fix.rewrite for fix in fixes if fix.applicability == "safe"] == ["emit"]

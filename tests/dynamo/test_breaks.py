"""What a check says about breaks: where, why, and what else it saw."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from graphmend.dynamo.report import TargetReport
from graphmend.dynamo.report_cache import Store
from graphmend.dynamo.requests import Request
from graphmend.dynamo.service import Service

from .conftest import Checks

pytestmark = pytest.mark.torch
Check = Callable[..., TargetReport]


def marked(text: str, found: TargetReport) -> list[str]:
    """The source text under each break's span."""
    lines = ("import torch\nfrom torch import nn\n" + text).splitlines()
    return [lines[b.span.line - 1][b.span.column : b.span.end_column].strip() for b in found.breaks]


def test_a_branch_names_its_condition_and_both_sides_run(check: Check) -> None:
    text = """\
@torch.compile
def f(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    return y
def example_inputs():
    return [(torch.ones(3),)]
"""
    found = check(text)
    assert marked(text, found) == ["x.sum() > 0"]
    (only,) = found.breaks
    assert (only.gb_id, only.kind, only.function) == ("GB0170", "break", "f")
    assert any("torch.cond" in hint for hint in only.hints)
    assert found.graphs == 2
    assert {6, 8} <= found.executed[only.path]
    assert found.traced[only.path] >= {5, 6, 8, 9}


def test_sides_that_share_a_line_are_looked_for(check: Check) -> None:
    found = check(
        """
        # graphmend: example f(torch.ones(3))
        @torch.compile
        def f(x):
            return x + 1 if x.sum() > 0 else x - 1
        """
    )
    assert [run.inputs for run in found.runs] == ["given 1", "negated inputs"]


def test_both_modes_of_a_module_are_run(check: Check) -> None:
    """And that the other mode is compiled anew is no news."""
    found = check(
        """
        class Net(nn.Module):
            def forward(self, x):
                if self.training:
                    return x + 1
                print(x)
                return x
        """
    )
    assert [b.span.line for b in found.breaks] == [8]
    assert [run.inputs for run in found.runs] == ["given 1", "the module in eval mode"]
    assert found.recompiles == ()


def test_a_branch_for_another_type_is_run(check: Check) -> None:
    found = check(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)
            def forward(self, x):
                x = self.layer(x)
                if x.dtype == torch.float16 and torch.isinf(x).any():
                    x = x.clamp(-6e4, 6e4)
                return x
        """
    )
    assert [b.span.line for b in found.breaks] == [10]
    assert "module and inputs in float16" in [run.inputs for run in found.runs]
    assert found.recompiles == ()


def test_columns_are_code_points(check: Check) -> None:
    text = """\
@torch.compile
def f(x):
    größe = "日本語 🙂"; print(größe, x.shape)
    return x + 1
def example_inputs():
    return [(torch.ones(3),)]
"""
    found = check(text)
    assert marked(text, found) == ["print(größe, x.shape)"]
    assert not any("reorderable" in hint for hint in found.breaks[0].hints)  # it would lose output


def test_lines_after_a_method_chain_over_several_lines_are_right(check: Check) -> None:
    text = """\
@torch.compile
def f(x):
    k = (x
         .sum()
         .item())
    y = x * k
    print(y.shape)
    return y
def example_inputs():
    return [(torch.ones(3),)]
"""
    found = check(text)
    assert [b.span.line for b in found.breaks] == [7, 9]
    assert found.breaks[0].gb_id == "GB0124"


def test_a_break_in_a_loop_skips_the_frame(check: Check) -> None:
    found = check(
        """
        @torch.compile
        def f(x):
            for i in range(3):
                if x.sum() > i:
                    x = x + 1
            return x
        def example_inputs():
            return [(torch.ones(3),)]
        """
    )
    (only,) = found.breaks
    assert only.skipped_frame
    assert (only.gb_id, only.span.line) == ("GB0170", 7)
    assert found.graphs == 0


def test_a_helper_is_told_with_the_stack_that_leads_to_it(check: Check) -> None:
    found = check(
        """
        def helper(x):
            return x.sum().item()
        class Net(nn.Module):
            def forward(self, x):
                return x * helper(x)
        # graphmend: example f(torch.ones(2))
        f = torch.compile(Net())
        """,
        names=("Net",),
    )
    first, *others = ([(frame.function, frame.span.line) for frame in each.stack] for each in found.breaks)
    assert first == [("forward", 8), ("helper", 5)]
    # a torch before 2.13 traces the helper again where plain Python calls it
    assert others in ([], [[("helper", 5)]])


def test_fullgraph_raises(check: Check) -> None:
    found = check(
        """
        @torch.compile(fullgraph=True)
        def f(x):
            print(x.shape)
            return x
        def example_inputs():
            return [(torch.ones(3),)]
        """
    )
    assert [b.kind for b in found.breaks] == ["raises"]


def test_a_clean_function_has_none(check: Check) -> None:
    found = check(
        """
        def f(x):
            return torch.where(x > 0, x, -x) if x.dim() else x
        """,
        names=("f",),
    )
    assert found.breaks == ()
    assert found.graphs == 1
    assert found.origin == "synthesised"


def test_recompiles_are_listed(check: Check) -> None:
    found = check(
        """
        @torch.compile(dynamic=False)
        def f(x, n):
            return x * n
        def example_inputs():
            return [(torch.ones(3), 1), (torch.ones(3), 2)]
        """
    )
    assert [r.function for r in found.recompiles] == ["f"]


def test_unsaved_text_wins_and_relative_imports_work(checks: Checks, write: Callable[..., Path]) -> None:
    write("", "package/__init__.py")
    part = write("def part(x):\n    return x\n", "package/part.py")
    path = write("from .part import part\n@torch.compile\ndef f(x):\n    return part(x)\n", "package/model.py")
    unsaved = "def part(x):\n    print(x)\n    return x\n"
    report = checks(path, texts={str(part): unsaved})
    (only,) = report.breaks
    assert (only.path, only.span.line, only.source) == (str(part), 2, "    print(x)")
    assert checks(path).breaks == ()


def test_what_was_printed_is_shown(checks: Checks, write: Callable[..., Path]) -> None:
    path = write("@torch.compile\ndef f(x):\n    print('size', x.shape)\n    return x\n")
    assert "size torch.Size" in checks(path).output


def test_every_way_to_compile_is_found(checks: Checks, write: Callable[..., Path]) -> None:
    path = write(
        """
        class Method(nn.Module):
            @torch.compile(mode="max-autotune")
            def forward(self, x):
                print("method")
                return x
        class Part(nn.Module):
            def forward(self, x):
                return x
        class Whole(nn.Module):
            def __init__(self):
                super().__init__()
                self.part = torch.compile(Part())
                self.compile()
            def forward(self, x):
                print("whole")
                return self.part(x)
        wrapped = torch.compile(Part(), backend="inductor")
        in_place = Part()
        in_place.compile()
        @torch.compile
        def function(x):
            return x
        """
    )
    report = checks(path)
    assert {target.name for target in report.targets} == {"Method", "Whole", "wrapped", "in_place", "function"}
    assert [target.problem for target in report.targets] == [None] * 5
    assert sorted(item.span.line for item in report.breaks) == [7, 18]


def test_a_report_is_recalled_by_a_later_session(
    checks: Checks, write: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks.service, "_store", Store(tmp_path / "reports"))
    path = write("@torch.compile\ndef f(x):\n    print(x)\n    return x\n")
    report = checks(path)
    request = Request(str(path), interpreter=sys.executable)
    later = Service(store=Store(tmp_path / "reports"))
    assert later.recall(request) == report
    path.write_text(path.read_text().replace("print", "repr"))
    assert later.recall(request) is None


def test_gradients_that_are_already_there_break_nothing(check: Callable[..., TargetReport]) -> None:
    """A parameter of another type does not go with the gradient that an import left behind."""
    found = check(
        """
        class Net(nn.Linear):
            def forward(self, x):
                x = super().forward(x)
                if x.dtype == torch.float16:
                    x = x.float()
                return x

        net = Net(4, 4)
        net(torch.ones(2, 4)).sum().backward()
        compiled = torch.compile(net)
        """,
        names=("compiled",),
    )
    assert found.breaks == ()
    assert "module and inputs in float16" in [run.inputs for run in found.runs]


def test_an_input_that_raises_is_no_break_of_the_program(check: Check) -> None:
    text = """\
class Net(nn.Module):
    def forward(self, x):
        if x.dim() != 2:
            raise ValueError("two dimensions")
        if x.sum() > 0:
            return x + 1
        return x
def example_inputs():
    return [(torch.ones(2, 3),), (torch.ones(3),)]
"""
    found = check(text)
    assert [b.gb_id for b in found.breaks] == ["GB0170"]
    assert any(run.raised for run in found.runs)
    found = check(text.replace("(torch.ones(2, 3),), ", ""))
    assert [b.gb_id for b in found.breaks] == ["GB0088"]


FIRST_CALLS = {
    "an attribute of the module": """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mask = None
    def forward(self, x):
        if self.mask is None:
            print("made")
            self.mask = torch.ones(3)
        return x * self.mask
""",
    "a variable of the file": """\
mask = None
@torch.compile
def f(x):
    global mask
    if mask is None:
        print("made")
        mask = torch.ones(3)
    return x * mask
""",
    "an attribute of an object that has none yet": """\
import functools
class Kept:
    @functools.cached_property
    def mask(self):
        print("made")
        return torch.ones(3)
kept = Kept()
@torch.compile
def f(x):
    return x * kept.mask
""",
    "a table of the file": """\
masks = {}
@torch.compile
def f(x):
    if 3 not in masks:
        print("made")
        masks[3] = torch.ones(3)
    return x * masks[3]
""",
}


@pytest.mark.parametrize("text", FIRST_CALLS.values(), ids=FIRST_CALLS)
def test_what_a_first_call_builds_is_not_there_when_it_is_compiled(check: Check, text: str) -> None:
    """The eager run that finds inputs is no call of the program: it must hide nothing that the first one breaks at."""
    found = check(text + "def example_inputs():\n    return [(torch.ones(2, 3),)]\n")
    assert "Failed to trace builtin operator" in [b.gb_type for b in found.breaks]


def test_what_a_call_keeps_in_re_is_not_there_either(check: Check) -> None:
    """Some versions of torch break while `re` compiles a pattern; here the program tells whether it does."""
    found = check("""\
import re
@torch.compile
def f(x):
    if not any(key[1] == "never seen" for key in re._cache):
        print("first")
        plainly()
    return x + 1
@torch.compiler.disable
def plainly():
    re.compile("never seen")
def example_inputs():
    return [(torch.ones(2, 3),)]
""")
    assert "Failed to trace builtin operator" in [b.gb_type for b in found.breaks]

"""A helper whose breaks only show from a caller that is imported after it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from graphmend.importer import install
from graphmend.importer.code.code_swap import Unswappable, functions_of, replacements, swap

HELPER = """STATE = []


def note(value, label="n"):
    STATE.append(label)
    if value > 0:
        value = value + 1
    else:
        value = value - 1
    return value
"""
CALLER = """import torch
from gm_helper import note


@torch.compile(backend="eager")
def step(x: torch.Tensor):
    return note(x.sum())
"""


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMEND_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "gm_helper.py").write_text(HELPER)
    (tmp_path / "gm_caller.py").write_text(CALLER)


@pytest.mark.torch
@pytest.mark.parametrize("times", [1, 2])
def test_a_loaded_helper_is_mended_and_its_state_stays(tmp_path: Path, times: int) -> None:
    torch = pytest.importorskip("torch", minversion="2.13")
    for _ in range(times):  # the second time from the cache
        importer = install([], unsafe=True, folders=[tmp_path])
        try:
            helper = importlib.import_module("gm_helper")
            function, state = helper.note, helper.STATE
            assert str(tmp_path / "gm_helper.py") not in importer.report.mended
            caller = importlib.import_module("gm_caller")
            assert str(tmp_path / "gm_helper.py") in importer.report.mended
            assert importer.report.problems == {}
            assert (helper.note, helper.STATE) == (function, state)
            assert "where" in function.__code__.co_names
            with torch._dynamo.error_on_graph_break(True):
                assert [caller.step(torch.tensor([v])).item() for v in (2.0, -2.0)] == [3.0, -3.0]
        finally:
            importer.uninstall()
            for name in ("gm_helper", "gm_caller"):
                sys.modules.pop(name, None)


def test_what_is_more_than_bodies_is_left(tmp_path: Path) -> None:
    helper = importlib.import_module("gm_helper")
    path, code = str(tmp_path / "gm_helper.py"), helper.note.__code__
    before = compile(HELPER, path, "exec", dont_inherit=True)
    for mended in (
        HELPER.replace("STATE = []", "STATE = [1]"),
        HELPER.replace('label="n"', 'label="m"'),
        HELPER.replace("value - 1", "value - 2").replace("(value, label", "(value, more=1, label"),
    ):
        with pytest.raises(Unswappable):
            replacements(before, compile(mended, path, "exec", dont_inherit=True))
    codes = replacements(before, compile(HELPER.replace("value - 1", "value - 2"), path, "exec", dont_inherit=True))
    assert list(codes) == [code]
    assert swap(functions_of({path})[path], codes) == 1
    assert helper.note(-1) == -3
    sys.modules.pop("gm_helper", None)


FLAGGED = """def helper(x, flag):
    if flag:
        return x * 2
    return x + 1
"""
WITH_TENSOR = """import torch
from gm_helper import helper


@torch.compile(backend="eager")
def step(x: torch.Tensor):
    return helper(x, x.sum() > 0)
"""


@pytest.mark.torch
@pytest.mark.parametrize("unsafe", [False, True])
def test_other_callers_may_pass_something_else(tmp_path: Path, unsafe: bool) -> None:
    """A helper in another file is mended for the tensor that one caller passes; others may pass what is none."""
    torch = pytest.importorskip("torch", minversion="2.13")
    (tmp_path / "gm_helper.py").write_text(FLAGGED)
    (tmp_path / "gm_caller.py").write_text(WITH_TENSOR)
    importer = install([], unsafe=unsafe, folders=[tmp_path])
    try:
        helper = importlib.import_module("gm_helper")
        caller = importlib.import_module("gm_caller")
        mended = importer.report.mended.get(str(tmp_path / "gm_helper.py"))
        assert [caller.step(v * torch.ones(1)).item() for v in (1.0, -1.0)] == [2.0, 0.0]
        if unsafe:
            assert mended is not None
            assert mended.mends[0]["differences"] == ["callers"]
        else:
            assert mended is None
            assert helper.helper(torch.ones(1), False).item() == 2.0
    finally:
        importer.uninstall()
        for name in ("gm_helper", "gm_caller"):
            sys.modules.pop(name, None)

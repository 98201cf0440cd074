"""What every test may use. Fixtures of one room only stand beside its tests."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """Measured truth that lies beside a checkout; tests that need it are skipped where it is absent."""
    path = ROOT.parent / "shared"
    if not path.is_dir():
        pytest.skip("needs ../shared, which is not here")
    return path


@pytest.fixture(scope="session")
def real_files(real_files_if_any: list[Path]) -> list[Path]:
    """Files that people wrote for torch; tests that need them are skipped where none are at hand."""
    if not real_files_if_any:
        pytest.skip("needs transformers, diffusers or timm")
    return real_files_if_any


@pytest.fixture(scope="session")
def real_files_if_any() -> list[Path]:
    """Files that people wrote for torch: those of the model libraries at hand, and of the folders in
    GRAPHMEND_FUZZ_FILES."""
    folders = [Path(name) for name in os.environ.get("GRAPHMEND_FUZZ_FILES", "").split(os.pathsep) if name]
    for package in ("transformers", "diffusers", "timm"):
        spec = importlib.util.find_spec(package)
        folders += [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    found = sorted(path for folder in folders for path in folder.rglob("*.py") if 2000 < path.stat().st_size < 80_000)
    return [path for path in found if "import torch" in path.read_text("utf-8", "replace")]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests never read or write the user's cache."""
    monkeypatch.setenv("GRAPHMEND_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "graphmend-cache"))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where `-m` leaves out what needs torch, files of which all does are not even imported: they import it."""
    if "not torch" not in config.option.markexpr.split(" and ") or collection_path.suffix != ".py":
        return None
    text = collection_path.read_text("utf-8")
    return True if re.search(r"^pytestmark = .*\bmark\.torch\b", text, re.MULTILINE) else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("torch") and importlib.util.find_spec("torch") is None:
        pytest.skip("needs torch")


@pytest.fixture(autouse=True)
def _torch_is_imported_where_the_marker_says_so(request: pytest.FixtureRequest) -> Iterator[None]:
    before = "torch" in sys.modules
    yield
    marked = request.node.get_closest_marker("torch") is not None
    assert before or marked or "torch" not in sys.modules, "a test that imports torch is marked `torch`"

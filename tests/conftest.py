"""What every test may use. Fixtures of one room only stand beside its tests."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
Report = pytest.CollectReport


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


#: folders of tests, and files, that speak to processes: servers, commands, programs under the importer
_OF_PROCESSES = ("assistant", "importer", "server", "cli/test_full.py", "cli/test_process.py", "cli/test_hooks.py")


def pytest_itemcollected(item: pytest.Item) -> None:
    below = item.path.relative_to(HERE).as_posix() if item.path.is_relative_to(HERE) else ""
    if below.startswith(_OF_PROCESSES):
        item.add_marker("process")


def _without_torch(config: pytest.Config) -> bool:
    """Whether `-m` leaves out what needs torch."""
    return "not torch" in str(config.option.markexpr).split(" and ")


def _all_needs_torch(path: Path) -> bool:
    """Whether a file is marked `torch` as a whole."""
    text = path.read_text("utf-8") if path.suffix == ".py" else ""
    return re.search(r"^pytestmark = (?:.*|\[\s*pytest\.)\bmark\.torch\b", text, re.MULTILINE) is not None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where torch is left out, files whose tests all need it are not even imported: they import it."""
    return True if _without_torch(config) and _all_needs_torch(collection_path) else None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Report, Report]:
    before = "torch" in sys.modules
    report = yield
    imports = not before and "torch" in sys.modules
    if imports and _without_torch(collector.config) and not _all_needs_torch(collector.path):
        report.outcome, report.longrepr = "failed", "a file that imports torch says `pytestmark = pytest.mark.torch`"
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("torch") and importlib.util.find_spec("torch") is None:
        pytest.skip("needs torch")
    if "torch._dynamo.guards" in sys.modules:
        from graphmend.dynamo.worker.runs.warmup import leave_guards_untimed

        leave_guards_untimed()


@pytest.fixture(autouse=True)
def _torch_is_imported_where_the_marker_says_so(request: pytest.FixtureRequest) -> Iterator[None]:
    before = "torch" in sys.modules
    yield
    marked = request.node.get_closest_marker("torch") is not None
    assert before or marked or "torch" not in sys.modules, "a test that imports torch is marked `torch`"

"""Modules mended while they are imported: which, what Python sees of it, and what happens when a mend does not hold."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from graphmend.importer.hook import Importer, MendingLoader
from graphmend.importer.outcome import Outcome, Texts
from graphmend.importer.targets import Targets

MODULE = '''"""A module."""
answer = 1


def function():
    if answer:  # replaced by one line
        value = 1
    else:
        value = 2
    return value


def fails():
    return answer.missing
'''
BRANCH = "    if answer:  # replaced by one line\n        value = 1\n    else:\n        value = 2\n"


class Mender:
    """Mends as it is told, and keeps nothing."""

    def __init__(self, change: Callable[[str], str | None]) -> None:
        self.change = change
        self.seen: list[str] = []

    def mend(self, text: str, path: str, texts: Texts) -> Outcome:
        self.seen.append(Path(path).name)
        return Outcome(self.change(text), [{"code": "GM101"}])

    def load(self, text: str, path: str, texts: Texts) -> None:
        return None

    def store(self, text: str, path: str, code: CodeType | None, outcome: Outcome) -> None: ...

    def expect(self, path: str) -> None: ...

    def in_order(self, paths: Sequence[str]) -> Sequence[str]:
        return paths

    def end(self) -> None: ...


def shorter(text: str) -> str | None:
    """Adds an import at the top and makes four lines one: lines move both ways."""
    changed = text.replace(BRANCH, "    value = 10 + answer\n").replace("answer = 1", "import math\n\nanswer = 1")
    return changed if changed != text else None


Start = Callable[..., Importer]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Writes files, puts their folder on the path and installs an importer for them."""
    before, installed = dict(sys.modules), []

    def start(
        files: dict[str, str],
        change: Callable[[str], str | None] = shorter,
        names: tuple[str, ...] = (),
        **options: Any,
    ) -> Importer:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))
        targets = Targets(names, folders=() if names else [tmp_path], **options)
        importer = Importer(targets, Mender(change))
        importer.install()
        installed.append(importer)
        return importer

    yield start
    for importer in installed:
        importer.uninstall()
    for name in sys.modules.keys() - before.keys():
        del sys.modules[name]
    sys.modules.update(before)  # a test may have put a module of its own in the place of one


def test_a_module_is_mended_and_reported(start: Start, tmp_path: Path) -> None:
    importer = start({"gm_mod.py": MODULE})
    module = importlib.import_module("gm_mod")
    assert module.function() == 11
    assert list(importer.report.mended) == [str(tmp_path / "gm_mod.py")]
    assert importer.report.problems == {}


def test_everything_else_shows_the_file_on_disk(start: Start, tmp_path: Path) -> None:
    start({"gm_mod.py": MODULE})
    module = importlib.import_module("gm_mod")
    assert inspect.getsource(module) == MODULE
    assert inspect.getsource(module.fails) == "def fails():\n    return answer.missing\n"
    assert inspect.getsource(module.function) == MODULE[MODULE.index("def function") : MODULE.index("\n\ndef fails")]
    with pytest.raises(AttributeError) as raised:
        module.fails()
    frame = traceback.extract_tb(raised.value.__traceback__)[-1]
    assert (frame.filename, frame.lineno, frame.line) == (str(tmp_path / "gm_mod.py"), 14, "return answer.missing")
    assert "__cached__" not in vars(module) or not (tmp_path / "__pycache__").exists(), (
        "mended code is not kept as Python's own"
    )


def test_packages_by_name_and_nothing_beside_them(start: Start) -> None:
    importer = start(
        {
            "gm_pkg/__init__.py": "from gm_pkg.sub import inner\n",
            "gm_pkg/sub/__init__.py": "",
            "gm_pkg/sub/inner.py": MODULE,
            "gm_pkg_other.py": MODULE,
        },
        names=("gm_pkg",),
    )
    assert importlib.import_module("gm_pkg").inner.function() == 11
    assert importlib.import_module("gm_pkg_other").function() == 1
    assert [Path(path).name for path in importer.report.mended] == ["inner.py"]


def test_part_of_a_package_can_be_named(start: Start, tmp_path: Path) -> None:
    files = {"gm_pkg/__init__.py": MODULE, "gm_pkg/sub/__init__.py": MODULE, "gm_pkg/sub/inner.py": MODULE}
    importer = start(files, names=("gm_pkg.sub", "gm_absent"))
    assert importer.targets.unused == {"gm_pkg.sub", "gm_absent"}
    assert importlib.import_module("gm_pkg.sub.inner").function() == 11
    assert importlib.import_module("gm_pkg").function() == 1
    assert importer.targets.unused == {"gm_absent"}
    spec = importlib.util.spec_from_file_location("renamed", tmp_path / "gm_pkg/sub/inner.py")
    assert spec is not None
    assert isinstance(spec.loader, MendingLoader), "code is loaded from a package under other names too"


def test_a_folder_does_not_include_what_is_installed_in_it(start: Start) -> None:
    start({"site-packages/gm_installed.py": MODULE, "gm_mod.py": MODULE})
    sys.path.insert(0, str(Path(sys.path[0]) / "site-packages"))
    try:
        assert importlib.import_module("gm_installed").function() == 1
    finally:
        del sys.path[0]
    assert importlib.import_module("gm_mod").function() == 11


@pytest.mark.parametrize("name", ["torch", "torch.nn", "json", "graphmend", "graphmend.analysis"])
def test_torch_the_standard_library_and_graphmend_cannot_be_targets(name: str) -> None:
    with pytest.raises(ValueError, match="never mended"):
        Targets([name])


def test_the_standard_library_is_known_by_its_files(start: Start) -> None:
    """A user's module may have a name of the library's; the library's file is left alone whatever it is called."""
    importer = start({"statistics.py": MODULE})
    sys.modules.pop("statistics", None)
    assert importlib.import_module("statistics").function() == 11
    assert not importer.targets.hold("renamed", inspect.getsourcefile(traceback) or "")


def test_code_loaded_from_a_spec_is_mended(start: Start, tmp_path: Path) -> None:
    start({"gm_mod.py": MODULE, "plugins/gm_plugin.py": MODULE})
    spec = importlib.util.spec_from_file_location("anything", tmp_path / "plugins/gm_plugin.py")
    assert spec is not None
    assert isinstance(spec.loader, MendingLoader)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.function() == 11

    spec = importlib.util.find_spec("gm_mod")
    assert spec is not None
    assert isinstance(spec.loader, MendingLoader)
    code = spec.loader.get_code("gm_mod")
    assert code is not None
    namespace: dict[str, Any] = {"__name__": "gm_mod"}
    exec(code, namespace)
    assert namespace["function"]() == 11
    assert spec.loader.get_source("gm_mod") == MODULE
    assert runpy.run_module("gm_mod")["function"]() == 11


def test_a_reload_mends_the_new_text(start: Start, tmp_path: Path) -> None:
    start({"gm_mod.py": MODULE})
    module = importlib.import_module("gm_mod")
    (tmp_path / "gm_mod.py").write_text(MODULE.replace("answer = 1", "answer = 7"))
    assert importlib.reload(module).function() == 17


def test_what_does_not_parse_when_mended_runs_as_it_is(start: Start, tmp_path: Path) -> None:
    importer = start({"gm_mod.py": MODULE}, lambda text: text + "def broken(:\n")
    assert importlib.import_module("gm_mod").function() == 1
    assert importer.report.mended == {}
    assert "SyntaxError" in importer.report.problems[str(tmp_path / "gm_mod.py")]


def test_a_failing_mender_is_reported_once_for_a_file(start: Start, tmp_path: Path) -> None:
    def fail(text: str) -> str:
        raise LookupError("no such thing")

    importer = start({"gm_mod.py": MODULE, "gm_two.py": MODULE}, fail)
    for name in ("gm_mod", "gm_two"):
        module = importlib.import_module(name)
        assert importlib.reload(module).function() == 1
    assert list(importer.report.problems) == [str(tmp_path / "gm_mod.py"), str(tmp_path / "gm_two.py")]
    assert "LookupError: no such thing" in importer.report.problems[str(tmp_path / "gm_mod.py")]


def test_a_module_is_never_run_twice(start: Start, tmp_path: Path) -> None:
    """Where a mend makes a module raise it is a wrong mend: to hide it would repeat what the module did."""
    runs = f"open({str(tmp_path / 'log')!r}, 'a').write('ran ')\n"
    importer = start({"gm_mod.py": MODULE + runs}, lambda text: text + "raise RuntimeError('mended badly')\n")
    with pytest.raises(RuntimeError, match="mended badly"):
        importlib.import_module("gm_mod")
    assert (tmp_path / "log").read_text() == "ran "
    assert importer.report.problems == {}


def test_a_module_that_does_not_import_at_all_fails_as_ever(start: Start) -> None:
    importer = start(
        {"gm_mod.py": MODULE + "import gm_not_there\n", "gm_two.py": MODULE + "1 / 0\n", "gm_three.py": "def (:\n"}
    )
    with pytest.raises(ModuleNotFoundError, match="gm_not_there"):
        importlib.import_module("gm_mod")
    with pytest.raises(ZeroDivisionError):
        importlib.import_module("gm_two")
    with pytest.raises(SyntaxError):
        importlib.import_module("gm_three")
    assert importer.report.problems == {}


def test_another_tools_loader_is_left_alone(start: Start, tmp_path: Path) -> None:
    class Theirs(SourceFileLoader): ...

    class Finder:
        def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
            file = tmp_path / "gm_mod.py"
            return (
                importlib.util.spec_from_file_location(name, file, loader=Theirs(name, str(file)))
                if name == "gm_mod"
                else None
            )

    start({"gm_mod.py": MODULE})
    finder = Finder()
    sys.meta_path.insert(0, finder)  # type: ignore[arg-type]
    try:
        assert importlib.import_module("gm_mod").function() == 1
    finally:
        sys.meta_path.remove(finder)  # type: ignore[arg-type]


def test_uninstalling_leaves_python_as_it_was(tmp_path: Path) -> None:
    finders, function = list(sys.meta_path), importlib.util.spec_from_file_location
    importer = Importer(Targets([], [tmp_path]), Mender(shorter))
    importer.install()
    importer.uninstall()
    assert sys.meta_path == finders
    assert importlib.util.spec_from_file_location is function

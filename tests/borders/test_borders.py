"""The house's borders. Reads every module's imports from its syntax tree, lazy ones and those under `TYPE_CHECKING`
included; the tables are in `house.py`.
"""

from __future__ import annotations

import ast
import graphlib
import sys
from pathlib import Path

import house
import pytest
from house import ARROWS, COMMON, FAMILIES, FLAT, FLOORS, LONGER, MOST_LINES, MOST_MODULES, PACKAGES, ROOT

#: the standard library of the newest Python; `tomllib` came with 3.11
STANDARD = sys.stdlib_module_names | {"tomllib"}


def offence(room: str, name: str) -> str | None:
    """Why `room` may not import `name`; None where it may."""
    first, *rest = name.split(".")
    if first in STANDARD:
        return None
    if first != "graphmend":
        return None if first in PACKAGES[room] else f"the package {first} does not belong in {room}"
    if not rest or rest[0] == "__version__":
        return None
    other = "dynamo/worker" if rest[:2] == ["dynamo", "worker"] else rest[0]
    if other == room or other in ARROWS[room]:
        return None
    if room == "dynamo/worker":
        return "the worker runs in the user's interpreter, where graphmend may not be installed"
    return f"{room} must not know {other}"


def test_every_import_follows_an_arrow() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: imports {name}: {why}"
        for path in house.modules()
        for line, name in house.imports(path)
        if (why := offence(house.room_of(path), name)) is not None
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_the_worker_imports_itself_relatively() -> None:
    """Its modules have a name of their own in the user's interpreter."""
    for path in (ROOT / "dynamo" / "worker").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom):
                assert node.level or not (node.module or "").startswith("graphmend"), f"{path.name}:{node.lineno}"


def test_published_modules_follow_arrows_too() -> None:
    for path in sorted((ROOT / "src" / "graphmend").glob("*.py")):
        for _, name in ((node.lineno, node.module or "") for node in _from_imports(path)):
            first, *rest = name.split(".")
            ours = first == "graphmend" and (not rest or rest[0] == "cli")
            assert ours or first in STANDARD, f"{path.name} imports {name}"


def _from_imports(path: Path) -> list[ast.ImportFrom]:
    return [node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.ImportFrom)]


def test_no_circles() -> None:
    """No file imports itself through others, by any kind of import."""
    try:
        graphlib.TopologicalSorter(house.file_graph()).prepare()
    except graphlib.CycleError as error:
        pytest.fail("a circle: " + " -> ".join(error.args[1]))


def floor_offences(floors: dict[str, tuple[str, ...]], graph: dict[str, set[str]]) -> list[str]:
    """Imports that do not go down, and what has no floor."""
    wrong = []
    for folder, lines in floors.items():
        level = {name: number for number, line in enumerate(lines) for name in line.split()}
        prefix = "graphmend." + folder.replace("/", ".") + "."
        for module, imported in graph.items():
            if not module.startswith(prefix):
                continue
            own = module[len(prefix) :].partition(".")[0]
            if own not in level:
                wrong.append(f"{folder}/{own} has no floor")
                continue
            for other in imported:
                its = other[len(prefix) :].partition(".")[0] if other.startswith(prefix) else own
                if its != own and level.get(its, -1) >= level[own]:
                    wrong.append(f"{module} imports {other}, which does not stand below it")
    return sorted(set(wrong))


def test_imports_go_down() -> None:
    wrong = floor_offences(FLOORS, house.file_graph())
    assert not wrong, "\n" + "\n".join(wrong)


def test_every_folder_has_a_floor() -> None:
    """A folder is named in a table: with floors of its own, as one thing divided by subject, or as families."""
    folders = {path.parent.relative_to(ROOT).as_posix() for path in house.modules()}
    named = FLOORS.keys() | FLAT | FAMILIES | {f for f in folders if f.rpartition("/")[0] in FAMILIES}
    assert not folders - named, "folders that no table names"
    assert not (FLOORS.keys() | FLAT | FAMILIES) - folders, "tables name folders that are not there"


def test_families_do_not_know_each_other() -> None:
    wrong = []
    for root in FAMILIES:
        prefix = "graphmend." + root.replace("/", ".") + "."
        for module, imported in house.file_graph().items():
            family = module[len(prefix) :].partition(".")[0] if module.startswith(prefix) else ""
            for other in imported if family and family not in COMMON[root] else ():
                its = other[len(prefix) :].partition(".")[0] if other.startswith(prefix) else family
                if its != family and its not in COMMON[root]:
                    wrong.append(f"{module} imports {other}")
    assert not wrong, "\n" + "\n".join(sorted(wrong))


def test_folders_can_be_read() -> None:
    counts: dict[str, int] = {}
    for path in house.modules():
        folder = path.parent.relative_to(ROOT).as_posix()
        counts[folder] = counts.get(folder, 0) + (path.stem != "__init__")
        lines = len(path.read_bytes().splitlines())
        assert lines <= MOST_LINES or path.relative_to(ROOT).as_posix() in LONGER, f"{path}: {lines} lines"
    assert {folder: n for folder, n in counts.items() if n > MOST_MODULES} == {}
    for path, reason in LONGER.items():
        assert reason
        assert len((ROOT / path).read_bytes().splitlines()) > MOST_LINES, f"{path} needs no exception any more"


def test_every_folder_says_what_it_is() -> None:
    for folder in {path.parent for path in house.modules()} - {ROOT / "dynamo" / "worker" / "hook"}:
        init = folder / "__init__.py"
        assert init.is_file(), f"{folder} is no package"
        assert ast.get_docstring(ast.parse(init.read_bytes())), f"{init} has no docstring"


def test_few_know_the_walker_and_the_analysis() -> None:
    """Evaluators see a `Walk`, walks a `Host`: only what puts the walks together may name the classes behind them."""
    for module, imported in house.file_graph().items():
        below = not module.startswith(
            ("graphmend.analysis.interprocedural.", "graphmend.analysis.facts.", "graphmend.analysis.check")
        )
        if below and module.startswith("graphmend.analysis.") and ".incremental." not in module:
            assert "graphmend.analysis.interpreter.walk.statements" not in imported, module
            assert "graphmend.analysis.interprocedural.session" not in imported, module


def test_rooms_and_links_agree() -> None:
    """A room that is not linked would be missing from the wheel; a link to nowhere from the checkout."""
    rooms = {room for room in ARROWS if "/" not in room}
    links = {path.name for path in (ROOT / "src" / "graphmend").iterdir() if path.is_symlink()}
    assert links == rooms
    for room in rooms:
        assert (ROOT / "src" / "graphmend" / room).resolve() == ROOT / room
        assert (ROOT / room / "__init__.py").is_file()


@pytest.mark.parametrize(
    ("room", "name"),
    [
        ("analysis", "torch"),
        ("analysis", "graphmend.transforms.fix"),
        ("analysis", "libcst"),
        ("transforms", "lsprotocol.types"),
        ("transforms", "graphmend.runtime"),
        ("transforms", "graphmend.importer.hook"),
        ("server", "libcst"),
        ("server", "torch.nn"),
        ("server", "graphmend.cli.main"),
        ("dynamo", "graphmend.dynamo.worker"),
        ("dynamo", "torch"),
        ("dynamo/worker", "graphmend.analysis"),
        ("dynamo/worker", "numpy"),
        ("runtime", "graphmend.analysis"),
        ("cli", "pygls"),
    ],
)
def test_the_test_sees_wrong_arrows(room: str, name: str) -> None:
    assert offence(room, name)


def test_the_test_sees_imports_that_go_up() -> None:
    floors = {"a": ("low", "high next")}
    low, high, beside = "graphmend.a.low", "graphmend.a.high.x", "graphmend.a.next"
    assert floor_offences(floors, {low: set(), high: {low}, beside: {low}}) == []
    assert floor_offences(floors, {low: {high}}) == [f"{low} imports {high}, which does not stand below it"]
    assert floor_offences(floors, {beside: {high}}) == [f"{beside} imports {high}, which does not stand below it"]
    assert floor_offences(floors, {"graphmend.a.new": set()}) == ["a/new has no floor"]

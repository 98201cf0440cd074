"""The house's borders: which room may import which, and where each third-party package may appear.

Reads every module's imports from its syntax tree, lazy ones and those under `TYPE_CHECKING` included. The tables are
the house as docs/architecture.md draws it; a new arrow belongs there first.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: room -> the rooms it may import
ARROWS: dict[str, set[str]] = {
    "analysis": set(),
    "workspace": {"analysis"},
    "transforms": {"analysis"},
    "dynamo": {"analysis", "workspace"},
    "dynamo/worker": set(),
    "server": {"analysis", "workspace", "transforms", "dynamo"},
    "cli": {"analysis", "workspace", "transforms", "dynamo", "server"},
    "runtime": set(),
}

#: what the modules of `graphmend` itself may import: `graphmend.importer` is published there, `__main__` is the command
PUBLISHED = {"analysis", "workspace", "transforms", "cli"}

#: room -> the third-party packages it may import
PACKAGES: dict[str, set[str]] = {
    "analysis": set(),
    "workspace": {"pathspec", "platformdirs", "tomli"},
    "transforms": {"libcst"},
    "dynamo": set(),
    "dynamo/worker": {"torch"},
    "server": {"pygls", "lsprotocol", "cattrs"},
    "cli": {"rich", "pytest"},  # pytest: in its plugin only, which nothing else imports
    "runtime": {"torch"},
}


def room_of(path: Path) -> str:
    """The room that a file stands in."""
    parts = path.relative_to(ROOT).parts
    return "dynamo/worker" if parts[:2] == ("dynamo", "worker") else parts[0]


def modules() -> Iterator[Path]:
    for room in ARROWS:
        if "/" not in room:
            yield from (path for path in sorted((ROOT / room).rglob("*.py")) if "__pycache__" not in path.parts)


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, absolute dotted name) of everything that a module imports, wherever in it.

    Relative imports inside the worker are left out: its modules have a name of their own in the user's interpreter.
    """
    package = ["graphmend", *path.relative_to(ROOT).with_suffix("").parts[:-1]]
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            if node.level and module.startswith("graphmend.dynamo.worker") and room_of(path) == "dynamo/worker":
                continue
            # `from graphmend import analysis` imports a room by its alias
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def offence(room: str, name: str) -> str | None:
    """Why `room` may not import `name`; None where it may."""
    first, *rest = name.split(".")
    if first in sys.stdlib_module_names or first == "__future__":
        return None
    if first != "graphmend":
        return None if first in PACKAGES[room] else f"the package {first} does not belong in {room}"
    if room == "dynamo/worker":
        return "the worker runs in the user's interpreter, where graphmend may not be installed"
    if not rest or rest[0] == "__version__" or (room == "cli" and rest[0] == "importer"):
        return None
    other = "dynamo/worker" if rest[:2] == ["dynamo", "worker"] else rest[0]
    if other == room or other in ARROWS[room]:
        return None
    return f"{room} must not know {other}"


def test_every_import_follows_an_arrow() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: imports {name}: {why}"
        for path in modules()
        for line, name in imports(path)
        if (why := offence(room_of(path), name)) is not None
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_published_modules_follow_arrows_too() -> None:
    for path in sorted((ROOT / "src" / "graphmend").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                first, *rest = name.split(".")
                ours = first == "graphmend" and (not rest or rest[0] in PUBLISHED or rest[0] == "importer")
                assert ours or first in sys.stdlib_module_names, f"{path.name}:{node.lineno} imports {name}"


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

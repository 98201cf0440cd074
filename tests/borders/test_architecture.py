"""The page on the architecture is true: its floors are those of the tables, its paths exist, no folder is missing."""

from __future__ import annotations

import importlib.util
import re

import house
import pytest

PAGES = ("docs/architecture.md", "CONTRIBUTING.md")

#: a folder or file, with `<...>` for any name
_PATH = re.compile(r"(?:[\w.-]+|<\w+>)(?:/(?:[\w.-]|<\w+>)+)+/?|[\w-]+\.(?:py|md|toml|txt)")
#: what Markdown sets as code: fenced blocks are examples
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def paths_in(text: str) -> list[str]:
    """The paths of the repository that a page names in code."""
    words = [word for code in re.findall(r"`([^`\n]+)`", _FENCED.sub("", text)) for word in code.split()]
    return [word for word in words if _PATH.fullmatch(word) and not word.startswith(".venv/")]


def exists(path: str) -> bool:
    """Whether a file or folder stands at a path; a bare name may stand in any room."""
    pattern = re.sub(r"<\w+>", "*", path.rstrip("/"))
    return any(house.ROOT.glob(pattern)) or ("/" not in path and any(p.name == path for p in house.modules()))


@pytest.mark.parametrize("page", PAGES)
def test_every_path_exists(page: str) -> None:
    named = paths_in((house.ROOT / page).read_text("utf-8"))
    assert len(named) > 10
    assert not [path for path in named if not exists(path)]


def test_every_folder_has_its_line() -> None:
    page = (house.ROOT / "docs" / "architecture.md").read_text("utf-8")
    folders = {path.parent.relative_to(house.ROOT).as_posix() for path in house.modules()}
    families = {folder for folder in folders if folder.rpartition("/")[0] in house.FAMILIES}
    assert not [folder for folder in sorted(folders - families) if f"`{folder}`" not in page]


def test_floors_are_those_of_the_tables() -> None:
    place = house.ROOT / "docs" / "floors.py"
    spec = importlib.util.spec_from_file_location("floors", place)
    assert spec is not None
    assert spec.loader is not None
    floors = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(floors)
    page = (house.ROOT / "docs" / "architecture.md").read_text("utf-8")
    assert floors.with_floors(page) == page, "run `python docs/generate.py`"
    assert floors.with_floors(page.replace("    interprocedural\n", "")) == page


def test_the_test_sees_paths() -> None:
    text = "`analysis/nowhere.py`, `rules/<family>/x.py` and `python docs/generate.py`, not `a.b()` or `graphmend.x`"
    assert paths_in(text) == ["analysis/nowhere.py", "rules/<family>/x.py", "docs/generate.py"]
    assert not exists("analysis/nowhere.py")
    assert exists("analysis/rules/<family>/tensor_branch.py")
    assert exists("catalogue.py")

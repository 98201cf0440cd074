"""The floors of each room, written into the page on the architecture between two comments."""

from __future__ import annotations

import importlib.util
from pathlib import Path

_HOUSE = Path(__file__).resolve().parents[1] / "tests" / "borders" / "house.py"
BEGIN = "<!-- floors: made by docs/generate.py from tests/borders/house.py -->\n"
END = "<!-- end of floors -->\n"


def with_floors(page: str) -> str:
    """A page with the floors of now between the comments."""
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert end, "the comments around the floors are gone"
    return f"{before}{BEGIN}{_floors()}{END}{after}"


def _floors() -> str:
    """A block for each folder, its highest floor first."""
    spec = importlib.util.spec_from_file_location("house", _HOUSE)
    assert spec is not None
    assert spec.loader is not None
    house = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(house)
    parts = ["\n"]
    for folder, lines in house.FLOORS.items():
        parts.append("```text\n" + f"{folder}/\n")
        parts += [f"    {'   '.join(line.split())}\n" for line in reversed(lines)]
        parts.append("```\n\n")
    return "".join(parts)

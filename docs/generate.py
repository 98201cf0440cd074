"""Writes the pages of the documentation, and parts of pages, that are made from code. `--check` writes nothing and
fails on stale ones.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from coverage_page import coverage_page
from floors import with_floors
from results_page import results_page, speed_plots
from rule_pages import rule_pages

from graphmend.transforms import document
from graphmend.workspace.schema import json_schema, reference

DOCS = Path(__file__).resolve().parent

#: folders in which every page is generated: others there are left over
WHOLE = (DOCS / "rules", DOCS / "rewrites")


def pages() -> dict[Path, str]:
    """What each generated page should hold."""
    architecture = DOCS / "architecture.md"
    return {
        architecture: with_floors(architecture.read_text("utf-8")),
        DOCS / "coverage.md": coverage_page(),
        DOCS / "results.md": results_page(),
        **{DOCS / "images" / name: text for name, text in speed_plots().items()},
        DOCS / "configuration.md": reference(),
        DOCS / "configuration.schema.json": json.dumps(json_schema(), indent=2) + "\n",
        **{DOCS / "rules" / name: text for name, text in rule_pages().items()},
        **{DOCS / "rewrites" / name: text for name, text in document.pages().items()},
    }


def main() -> int:
    made = pages()
    stale = [path for path, text in made.items() if not path.is_file() or path.read_text("utf-8") != text]
    left_over = [path for folder in WHOLE for path in folder.glob("*") if path not in made]
    if "--check" in sys.argv[1:]:
        for path in (*stale, *left_over):
            print(f"{path.relative_to(DOCS)} is not what docs/generate.py makes", file=sys.stderr)
        return 1 if stale or left_over else 0
    for path in stale:
        path.parent.mkdir(exist_ok=True)
        path.write_text(made[path], "utf-8")
        print(f"wrote {path.relative_to(DOCS)}")
    for path in left_over:
        path.unlink()
        print(f"removed {path.relative_to(DOCS)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

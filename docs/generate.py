"""Writes the pages of the documentation that are made from code. `--check` writes nothing and fails on stale ones."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from graphmend.workspace.schema import json_schema, reference

DOCS = Path(__file__).resolve().parent


def pages() -> dict[Path, str]:
    """What each generated page should hold."""
    return {
        DOCS / "configuration.md": reference(),
        DOCS / "configuration.schema.json": json.dumps(json_schema(), indent=2) + "\n",
    }


def main() -> int:
    stale = [path for path, text in pages().items() if not path.is_file() or path.read_text("utf-8") != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.name} is not what docs/generate.py makes", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_text(pages()[path], "utf-8")
        print(f"wrote {path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

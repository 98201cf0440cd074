"""For MkDocs: what `mkdocs.yml` can't say."""

from __future__ import annotations

import posixpath
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

_LINK = re.compile(r"(\]\()(\.\./[^)\s]*)(\))")


def on_config(config: Any) -> Any:
    """A folder in the navigation stands for its pages, its README first."""
    for entry in config.nav:
        if isinstance(entry, dict):
            for title, target in entry.items():
                if isinstance(target, str) and target.endswith("/"):
                    pages = sorted(path.name for path in Path(config.docs_dir, target).glob("*.md"))
                    pages.sort(key=lambda name: name != "README.md")
                    entry[title] = [target + name for name in pages]
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Links from a page to a file outside of `docs/` lead to the repository, where they lead on GitHub too."""

    def there(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), link[2]))
        if path.startswith("docs/"):
            return link[0]
        return f"{link[1]}{config.extra['repository']}/blob/main/{path}{link[3]}"

    return _LINK.sub(there, markdown)


_PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")


def on_post_build(config: Any, **_: Any) -> None:
    """The playground gets the analysis as an archive, and Pyodide, where `npm ci` has put it beside its page."""
    docs, built = Path(config.docs_dir, "playground"), Path(config.site_dir, "playground")
    pyodide = docs / "node_modules" / "pyodide"
    if pyodide.is_dir():
        (built / "pyodide").mkdir(exist_ok=True)
        for name in _PYODIDE:
            shutil.copyfile(pyodide / name, built / "pyodide" / name)
    with zipfile.ZipFile(built / "graphmend.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(docs / "answers.py", "answers.py")
        for name, path in _sources(docs.parent.parent):
            archive.write(path, name)


def _sources(root: Path) -> list[tuple[str, Path]]:
    """The files of the rooms that the playground needs: code, and what is known of the newest torch."""
    found = [("graphmend/__init__.py", root / "src" / "graphmend" / "__init__.py")]
    for room in ("analysis", "transforms"):
        found += [(f"graphmend/{path.relative_to(root).as_posix()}", path) for path in (root / room).rglob("*.py")]
    facts = list((root / "analysis" / "torch_facts").glob("*.json"))
    newest = max((path.stem.rpartition("-")[2] for path in facts), key=lambda v: [int(n) for n in v.split(".")])
    kept = (path for path in facts if path.stem.endswith(f"-{newest}") or path.stem.startswith("calls"))
    data = [*kept, root / "transforms" / "held.json"]
    return [*found, *((f"graphmend/{path.relative_to(root).as_posix()}", path) for path in data)]

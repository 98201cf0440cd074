"""For MkDocs: what `mkdocs.yml` can't say."""

from __future__ import annotations

import posixpath
import re
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

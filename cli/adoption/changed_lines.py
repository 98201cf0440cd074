"""Which lines differ from a revision of git, for `--diff-from`: work in progress and new files count."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from graphmend.cli.failures import UsageError

#: a diff whose form does not depend on anybody's git configuration, and that starts no other program
_PLAIN = (
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-renames",
    "--unified=0",
    "--src-prefix=a/",
    "--dst-prefix=b/",
)

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def changed_lines(revision: str, folder: Path) -> dict[str, tuple[range, ...]]:
    """Changed and added lines by file, in the repository around `folder`."""
    if revision.startswith("-"):
        raise UsageError(f"--diff-from: `{revision}` is not a revision")
    top = Path(_git(folder, "rev-parse", "--show-toplevel").rstrip("\n"))
    diff = _git(top, "-c", "core.quotePath=false", "diff", *_PLAIN, revision, "--", "*.py")
    lines = {str(top / name): tuple(ranges) for name, ranges in parse(diff).items()}
    for name in _git(top, "ls-files", "-z", "--others", "--exclude-standard", "--", "*.py").split("\0"):
        if name:
            lines[str(top / name)] = (range(1, 1_000_000_000),)
    return lines


def parse(diff: str) -> dict[str, list[range]]:
    """The lines of each file that a diff without context adds; a removal counts at the line it leaves behind."""
    found: dict[str, list[range]] = {}
    name: str | None = None
    content = 0  # lines of a hunk, which may look like headers
    for line in diff.split("\n"):
        if content and line[:1] in ("+", "-"):
            content -= 1
        elif line.startswith("+++ "):
            name = line[6:].rstrip("\t") if line.startswith("+++ b/") else None
        elif name is not None and (hunk := _HUNK.match(line)):
            removed, first, added = int(hunk[1] or 1), int(hunk[2]), int(hunk[3] or 1)
            content = removed + added
            found.setdefault(name, []).append(range(max(first, 1), max(first, 1) + max(added, 1)))
    return found


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", errors="replace", check=False)
    except OSError as error:
        raise UsageError(f"--diff-from: git cannot be run: {error}") from None
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["git failed"])[0]
        raise UsageError(f"--diff-from: {said}")
    return done.stdout

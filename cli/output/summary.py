"""The last line of formats that people read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphmend.cli.output.concise import mark

if TYPE_CHECKING:
    from graphmend.cli.checking.file_report import CheckRun


def summary(run: CheckRun) -> str:
    """What was found in how many files, and what `--fix` can do about it."""
    many = f" for {run.gone:,} findings" if run.gone > run.mended else ""  # one mend may answer several
    mended = f"Made {count(run.mended, 'mend')}{many}. " if run.mended else ""
    checked = f"{count(len(run.files), 'file')} checked"
    if run.problems:
        checked += f", {count(len(run.problems), 'problem')}"
    if not run.files and run.problems:
        return f"Nothing could be checked: {count(len(run.problems), 'problem')}."
    if not run.items:
        return f"{mended}No {'new ' if run.narrowed else ''}graph breaks found, {checked}."
    files = len({item.finding.path for item in run.items})
    noun = "new finding" if run.narrowed else "finding"
    found = f"{mended}Found {count(len(run.items), noun)} in {count(files, 'file')}, {checked}."
    marks = [mark(item) for item in run.items]
    safe, unsafe = marks.count("[*] "), marks.count("[-] ")
    if run.fixed:  # safe alone, and in the way of an unsafe one that removes more breaks
        safe, unsafe = 0, safe + unsafe
    hints = []
    if safe:
        hints.append(f"{safe} can be mended with --fix")
    if unsafe:
        hints.append(f"{unsafe}{' more' if safe else ' can be mended'} with --fix --unsafe-fixes")
    narrowed = 0 if run.fixed else sum(any(offer.narrows for offer in item.offers) for item in run.items)
    if narrowed:
        hints.append(f"{narrowed} can be narrowed with --fix")
    return f"{found} {', '.join(hints)}." if hints else found


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"

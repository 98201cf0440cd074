"""Which torch files are checked against, in one line for each thing that is not as one would think."""

from __future__ import annotations

from collections.abc import Iterator

from graphmend.analysis.torch_facts import load, versions
from graphmend.workspace.interpreter import Interpreter


def remarks(interpreter: Interpreter, wanted: str | None, *, named: bool) -> Iterator[str]:
    """What was found, and what is done.

    `wanted` is the version that the settings ask for, which decides before the installed one; `named` says that the
    user chose the interpreter: only then it is worth a word that it has no torch.
    """
    installed = interpreter.torches
    if wanted is None and len(installed) > 1:
        (first, where), *others = installed
        rest = " and ".join(f"{version} in {folder}" for version, folder in others)
        yield f"torch {first} in {where} hides {rest}: checked as {load(first).minor}"
    if wanted is None and not installed and named:
        yield f"no torch in {interpreter.prefix}: checked as {versions()[-1]}"
    version = wanted or (installed[0][0] if installed else None)
    if version is not None and (unknown := of_version(version)) is not None:
        yield unknown


def of_version(version: str) -> str | None:
    """A remark where nothing is known of a version; None where it is."""
    known = load(version)
    if known.exact:
        return None
    minor = ".".join(version.split(".")[:2])
    if known.minor == versions()[0]:
        return (
            f"torch {minor} is older than {known.minor}, the oldest that is known: checked as {known.minor}; "
            "`verify` and `run` do nothing with it"
        )
    return f"torch {minor} is newer than known, checked as {known.minor}"

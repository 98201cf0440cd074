"""Mends modules while they are imported: `install(["package"])`. `graphmend run` does the same for a whole program."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from graphmend.importer import tested_torch
from graphmend.importer.hook import Importer
from graphmend.importer.mender import Mender
from graphmend.importer.outcome import Report
from graphmend.importer.targets import Targets
from graphmend.workspace.interpreter import running, torch_remarks
from graphmend.workspace.options import ConfigurationError, read

__all__ = ["Importer", "Report", "install"]


def install(
    packages: Sequence[str],
    unsafe: bool = False,
    *,
    folders: Iterable[Path] = (),
    accept: Iterable[str] = (),
    specialise: bool = False,
    apart: bool = False,
    later: bool = False,
    program: tuple[str, str] | None = None,
) -> Importer:
    """From now on, mends the modules of `packages` (and those below `folders`) while they are imported.

    Numbers and sizes that tensors decide stay in the graph where that holds. Those that must be known while tracing
    and that small integer inputs decide are taken as known, held by guards, until a call has other values; with
    `specialise` for several sets of values.

    A mend that differs only in the kinds of ways that `accept` names (such as "rounding") counts as safe; a kind that
    does not exist is a ValueError.

    With `apart` a process beside this one does the work, where the system can copy one: for a program of which nothing
    runs yet, as it copies what is open. `program` is the text and the path of its script, whose imports come first.

    With `later` modules run their own code first, and what they hold is mended before it is traced:
    nothing waits for mends that nothing needs.

    Modules that are imported already stay as they are. The result's `report` says what was mended.
    """
    folders = tuple(folders)
    try:
        accepted = read("accept", tuple(accept), "install")
    except ConfigurationError as error:
        raise ValueError(str(error)) from None
    mender = Mender(unsafe, folders, accepted)
    targets = Targets(packages, folders)
    importer = Importer(targets, mender, later)
    if (old := _too_old()) is not None:
        importer.report.problems["torch"] = old
        return importer
    importer.report.remarks.extend(torch_remarks(running(), None, named=False))
    if apart:
        mender.begin(lambda path: targets.hold("", path), program, later)
    importer.install()
    importer.after("torch._dynamo", lambda: _prepare_compiling(importer, specialise, unsafe))
    importer.after("torch.export._trace", lambda: _prepare_exporting(importer))
    return importer


def _too_old() -> str | None:
    """Why nothing is mended for the torch that this interpreter has; None where mends are made."""
    from graphmend.transforms.torch_versions import OLDEST, minor

    loaded = getattr(sys.modules.get("torch"), "__version__", None)
    version = str(loaded or next((stated for stated, _ in running().torches), ""))
    found = minor(version)
    if found is None or found >= OLDEST:
        return None
    return f"nothing is mended for torch {version}: mends were measured with torch {OLDEST[0]}.{OLDEST[1]} and newer"


def _prepare_compiling(importer: Importer, specialise: bool, unsafe: bool) -> None:
    install_switches = _install_switches(importer, specialise, unsafe)
    try:
        before_frames = importlib.import_module("graphmend.runtime.frames.first_frame").before_frames
        importer.mend_before(before_frames, install_switches)
    except (AttributeError, ImportError):  # a torch that is not known
        importer.mend_at_once()


def _prepare_exporting(importer: Importer) -> None:
    with contextlib.suppress(AttributeError, ImportError):
        importlib.import_module("graphmend.runtime.frames.first_frame").before_exports(importer.mend_waiting)


def _install_switches(importer: Importer, specialise: bool, unsafe: bool) -> Callable[[], object]:
    """Lets Dynamo capture scalars and data-dependent shapes wherever that holds: from the first frame on, or sooner,
    when the result is called.
    """
    try:
        switches = importlib.import_module("graphmend.runtime.switches")
        importer.report.taken_back = lambda: switches.taken_back() if switches.is_installed() else None
        importer.report.kept = switches.kept
        passes = tested_torch.passes
        install: Callable[[], object] = switches.install_when_needed(specialise, passes, trains_whole=unsafe)
    except ImportError as error:
        importer.report.problems["graphmend.runtime.switches"] = str(error)
        return lambda: None
    return install

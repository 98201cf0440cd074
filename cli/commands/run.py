"""`graphmend run`: runs a program as Python would, mending modules while they are imported."""

from __future__ import annotations

import argparse
import atexit
import builtins
import importlib.util
import json
import os
import sys
import types
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphmend.cli.failures import UsageError, complain
from graphmend.cli.option_values import words

if TYPE_CHECKING:
    from graphmend.importer import Importer, Report

#: frames that plain Python does not have
_OURS = ("<frozen importlib", __file__, str(Path(__file__).parents[2] / "importer" / "hook.py"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "graphmend run [--mend PACKAGE]... [--unsafe] [--accept KINDS] [--specialize] [--report FILE] "
        "(SCRIPT | -m MODULE) [ARG ...]"
    )
    parser.add_argument(
        "--mend",
        action="append",
        metavar="PACKAGE",
        default=[],
        help="mend the modules of this package; may be repeated (default: those in the script's own folder)",
    )
    parser.add_argument("--unsafe", action="store_true", help="make unsafe mends too; each says what differs")
    parser.add_argument(
        "--accept", metavar="KINDS", type=words, default=[], help="differences that a safe mend may have: rounding,..."
    )
    parser.add_argument(
        "--specialize",
        action="store_true",
        help="compile again for other values of small integers that were taken as known, up to four times",
    )
    parser.add_argument(
        "--report", metavar="FILE", type=Path, help="write what was mended to this file, as JSON, not to standard error"
    )
    parser.add_argument(
        "-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help="run a module by its name"
    )
    parser.add_argument(
        "program", nargs=argparse.REMAINDER, metavar="SCRIPT", help="the script to run, and its arguments"
    )


def run(args: argparse.Namespace) -> int:
    """Runs the program to its end; returns its exit status."""
    if args.module is not None:
        program: Program = Module(args.module)
    else:
        program = Script(args.program[1:] if args.program[:1] == ["--"] else args.program)
    importer = _install(args, program)
    atexit.register(_report, importer, args.report, os.getpid())  # runs after whatever the program registers
    return _status(lambda: program.run(importer))


def _install(args: argparse.Namespace, program: Program) -> Importer:
    from graphmend.importer import install

    program.enter()
    names, folders = (args.mend, []) if args.mend else program.own()
    try:
        return install(
            names,
            args.unsafe,
            folders=folders,
            accept=args.accept,
            specialise=args.specialize,
            apart=True,
            later=bool(args.mend),
            program=program.text(),
        )
    except ValueError as error:
        raise UsageError(str(error)) from None


class Program:
    """Something to run as `__main__`."""

    def enter(self) -> None:
        """Sets `sys.argv` and `sys.path` as Python would."""
        raise NotImplementedError

    def own(self) -> tuple[list[str], list[Path]]:
        """The packages, or the folders, that are its own."""
        raise NotImplementedError

    def text(self) -> tuple[str, str] | None:
        """Its text and path, where they are known before anything is imported."""
        return None

    def run(self, importer: Importer) -> None:
        """Runs it in a new `__main__`."""
        raise NotImplementedError


class Script(Program):
    def __init__(self, words: list[str]) -> None:
        if not words:
            raise UsageError("run: name a script, or a module with -m")
        self._words = words
        self._path = os.path.abspath(words[0])
        self._folder = os.path.dirname(os.path.realpath(words[0]))
        try:
            self._data = Path(self._path).read_bytes()
        except OSError as error:
            raise UsageError(f"run: {words[0]}: {error.strerror}") from None

    def enter(self) -> None:
        sys.argv = list(self._words)
        _first_on_path(self._folder)

    def own(self) -> tuple[list[str], list[Path]]:
        return [], [Path(self._folder)]

    def text(self) -> tuple[str, str] | None:
        try:
            return importlib.util.decode_source(self._data), self._path
        except (SyntaxError, UnicodeDecodeError):
            return None  # running it says so

    def run(self, importer: Importer) -> None:
        code = importer.code(self._data, self._path) if importer.targets.hold("__main__", self._path) else None
        if code is None:
            code = compile(self._data, self._path, "exec", dont_inherit=True)
        loader = SourceFileLoader("__main__", self._path)
        _execute(code, __file__=self._path, __cached__=None, __loader__=loader, __package__=None, __spec__=None)


class Module(Program):
    def __init__(self, words: list[str]) -> None:
        if not words:
            raise UsageError("run: -m needs the name of a module")
        self._name, *self._arguments = words

    def enter(self) -> None:
        sys.argv = ["-m", *self._arguments]
        _first_on_path(os.getcwd())

    def own(self) -> tuple[list[str], list[Path]]:
        top = self._name.partition(".")[0]
        spec = _find(top)
        if spec.submodule_search_locations is not None:
            return [top], []
        return [], [Path(spec.origin).parent] if spec.has_location and spec.origin else []

    def text(self) -> tuple[str, str] | None:
        from graphmend.workspace.module_loader import ModuleLoader

        loader = ModuleLoader(Path.cwd(), [Path(folder) for folder in sys.path if folder])
        found = loader.find(f"{self._name}.__main__") or loader.find(self._name)
        return (found[1], found[0]) if found is not None else None

    def run(self, importer: Importer) -> None:
        spec = _find(self._name)
        if spec.submodule_search_locations is not None:
            spec = _find(f"{self._name}.__main__")
        get_code = getattr(spec.loader, "get_code", None)
        code = get_code(spec.name) if get_code is not None else None
        if code is None:
            raise UsageError(f"run: {self._name} has no Python code")
        sys.argv[0] = spec.origin or self._name
        _execute(
            code,
            __file__=spec.origin,
            __cached__=spec.cached,
            __loader__=spec.loader,
            __package__=spec.parent,
            __spec__=spec,
        )


def _find(name: str) -> Any:
    """The spec of a module; imports the packages that it is in."""
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # something that a package imports is missing
        spec = None
    if spec is None:
        raise UsageError(f"run: no module named {name}")
    return spec


def _first_on_path(folder: str) -> None:
    if not getattr(sys.flags, "safe_path", False):  # from Python 3.11 on: -P leaves the program's folder out
        sys.path[0] = folder


def _execute(code: types.CodeType, **attributes: Any) -> None:
    module = types.ModuleType("__main__")
    module.__dict__.update(attributes, __builtins__=builtins)
    if "__annotations__" in vars(sys.modules["__main__"]):  # Python before 3.14 gives it to every `__main__`
        module.__annotations__ = {}
    sys.modules["__main__"] = module
    exec(code, module.__dict__)


def _status(program: Callable[[], None]) -> int:
    """Runs a program and returns the status with which Python would exit."""
    try:
        program()
    except UsageError:
        atexit.unregister(_report)  # nothing ran
        raise
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return stop.code or 0
        print(stop.code, file=sys.stderr)
        return 1
    except BaseException as error:
        _trim(error)
        sys.excepthook(type(error), error, error.__traceback__)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _trim(error: BaseException | None, seen: frozenset[int] = frozenset()) -> None:
    """Takes our frames, and those of the import system, out of an error's traceback and of those that it came from."""
    if error is None or id(error) in seen:
        return
    frames = []
    trace = error.__traceback__
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_OURS):
            frames.append(trace)
        trace = trace.tb_next
    kept = None
    for frame in reversed(frames):
        kept = types.TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    error.__traceback__ = kept
    for origin in (error.__cause__, error.__context__):
        _trim(origin, seen | {id(error)})


# What was done


def _report(importer: Importer, file: Path | None, process: int) -> None:
    """Says once, at the end, what was mended. A forked child that ends says nothing."""
    if os.getpid() != process:
        return
    unused = sorted(importer.targets.unused)
    if file is None:
        _tell(_lines(importer.report, unused))
        return
    try:
        file.write_text(json.dumps(_as_json(importer.report, unused), indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        complain(f"run: {file}: {error.strerror}")
        return
    word = "how" if importer.report.mended else "why"
    _tell([f"{_summary(importer.report)}; {file} says {word}"])


def _tell(lines: list[str]) -> None:
    if sys.stderr is None:
        return
    try:
        print("\n".join(lines), file=sys.stderr)
    except (OSError, ValueError, AttributeError):
        return  # the program closed its standard error


def _as_json(report: Report, unused: list[str]) -> dict[str, Any]:
    return {
        "mended": [{"path": path, "mends": list(outcome.mends)} for path, outcome in report.mended.items()],
        "left": [{"path": path, **note} for path, notes in report.left.items() for note in notes],
        "problems": [{"path": path, "reason": reason} for path, reason in report.problems.items()],
        "remarks": report.remarks,
        "unused": unused,
        "waiting": [path for path in report.waiting if path not in report.mended],
        "captures": report.taken_back() is not None,
        "kept": [{"path": path, "row": row, "function": function} for (path, row), function in _kept(report).items()],
        "taken_back": [
            {"path": path, "row": row, "function": function, "reason": reason}
            for path, row, function, reason in report.taken_back() or ()
        ],
    }


#: findings about numbers and sizes that tensors decide
_OF_NUMBERS = ("GM3", "GM4")


def _summary(report: Report) -> str:
    count = len(report.mended)
    mended = f"mended {count} module{'' if count == 1 else 's'}" if count else "nothing was mended"
    count = len(_kept(report))
    numbers = "a number or size that a tensor decides is" if count == 1 else f"numbers or sizes in {count} lines are"
    return f"graphmend: {mended}{f', {numbers} kept in the graph' if count else ''}"


def _kept(report: Report) -> dict[tuple[str, int], str]:
    """The lines whose numbers are kept in every graph, with their functions."""
    taken_back = {note[:2] for note in report.taken_back() or ()}
    return {(path, row): function for path, row, function in report.kept() if (path, row) not in taken_back}


def _lines(report: Report, unused: list[str]) -> list[str]:
    lines = [_summary(report)]
    for path, outcome in report.mended.items():
        lines.append(f"  {path}")
        for note in outcome.mends:
            mark = "accepted" if note["applicability"] == "safe" else note["applicability"]
            differs = f" ({mark}: {note['reason']})" if note["differences"] or mark != "accepted" else ""
            lines.append(f"    {note['row']}: {note['code']} {note['name']}: {note['title']}{differs}")
    kept = _kept(report)
    rest = ((path, note) for path, notes in report.left.items() for note in notes)
    reasons = [
        note["reason"]
        for path, note in rest
        if (path, note["row"]) not in kept or not note["code"].startswith(_OF_NUMBERS)
    ]
    left, withheld = len(reasons), sum(reason.startswith("unsafe: ") for reason in reasons)
    if left:
        more = f", of which --unsafe may mend {withheld}" if withheld else ""
        breaks, was = ("break is", "it was") if left == 1 else ("breaks are", "they were")
        lines.append(f"graphmend: {left} {breaks} left as {was}{more} (--report FILE says why)")
    taken_back = report.taken_back() or []
    if taken_back:
        count = len({(path, row) for path, row, _, _ in taken_back})
        numbers = (
            "a number or size that a tensor decides breaks"
            if count == 1
            else f"numbers or sizes in {count} lines break"
        )
        lines.append(f"graphmend: {numbers} the graph as before (--report FILE says why)")
    if report.waiting and not report.mended:
        modules, them = (
            ("1 module was", "it") if len(report.waiting) == 1 else (f"{len(report.waiting)} modules were", "them")
        )
        lines.append(f"graphmend: {modules} not mended: nothing that was compiled came to {them}")
    lines += [f"graphmend: no module of {name} was imported" for name in unused]
    lines += [f"graphmend: {path}: {reason}" for path, reason in report.problems.items()]
    lines += [f"graphmend: {remark}" for remark in report.remarks]
    return lines

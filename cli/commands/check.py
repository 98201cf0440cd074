"""`graphmend check`: from the command line to an exit status. Each step has a module of its own."""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from graphmend.cli.adoption import baseline
from graphmend.cli.checking.callers import add_callers
from graphmend.cli.checking.file_checker import Checker
from graphmend.cli.checking.file_report import CheckRun, FileReport, ReportedFinding
from graphmend.cli.checking.notebook_places import in_cells
from graphmend.cli.checking.plan import Plan
from graphmend.cli.checking.process_pool import check_all
from graphmend.cli.checking.selection import shown
from graphmend.cli.checking.unchecked import hints
from graphmend.cli.failures import UsageError, complain
from graphmend.cli.option_values import positive, words
from graphmend.cli.output import FOR_PEOPLE, FORMATS, WITH_EDITS, WITH_MENDS, writer
from graphmend.workspace import files, interpreter
from graphmend.workspace.cache import forget_stamps
from graphmend.workspace.config import Configurations, absolute, merged, parse_override
from graphmend.workspace.discovery import Discovery, discover
from graphmend.workspace.notebooks import reading
from graphmend.workspace.options import ConfigurationError
from graphmend.workspace.rule_codes import unknown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files and folders; - is standard input [default: .]")
    mending = parser.add_argument_group("mending")
    mending.add_argument("--fix", action="store_true", help="write safe mends")
    mending.add_argument("--unsafe-fixes", action="store_true", help="with --fix or --diff, take the other mends too")
    mending.add_argument(
        "--accept", metavar="KINDS", type=words, help="differences that a safe mend may have, such as rounding,dtype"
    )
    mending.add_argument("--diff", action="store_true", help="show what --fix would change, and write nothing")
    rules = parser.add_argument_group("rules and settings")
    rules.add_argument("--select", metavar="CODES", type=words, help="rules to report, such as GM1,GM201")
    rules.add_argument("--ignore", metavar="CODES", type=words, help="rules not to report")
    rules.add_argument("--preview", action="store_true", help="report rules that are still being tried, too")
    rules.add_argument("--torch-version", metavar="X.Y", help="the torch to check against [default: the installed one]")
    rules.add_argument(
        "--python", metavar="PATH", type=Path, help="the interpreter, or its environment, with that torch"
    )
    rules.add_argument("--config", metavar="FILE|KEY=VALUE", action="append", default=[], help="settings; repeatable")
    rules.add_argument("--isolated", action="store_true", help="read no configuration files")
    output = parser.add_argument_group("output")
    output.add_argument("--output-format", choices=FORMATS, default="full")
    output.add_argument("--output-file", metavar="FILE", type=Path, help="write there instead of standard output")
    output.add_argument("--show-fixes", action="store_true", help="mark what can be mended, in every format that can")
    output.add_argument("--statistics", action="store_true", help="count findings by rule instead of showing them")
    output.add_argument("--exit-zero", action="store_true", help="end with 0 even where something was found")
    output.add_argument(
        "--verbose", "-v", action="store_true", help="show how each finding is known, and all its mends"
    )
    output.add_argument("--watch", "-w", action="store_true", help="check again when files change, until interrupted")
    output.add_argument("--quiet", "-q", action="store_true", help="no summary and no log")
    adopting = parser.add_argument_group("adopting")
    adopting.add_argument("--baseline", metavar="FILE", type=Path, help="report only what this file does not know")
    adopting.add_argument("--write-baseline", metavar="FILE", type=Path, help="write what is found now as known")
    adopting.add_argument("--add-ignores", metavar="REASON", help="add a comment that takes it back to every finding")
    adopting.add_argument("--diff-from", metavar="REV", help="report changed lines only, compared to a git revision")
    selection = parser.add_argument_group("files")
    selection.add_argument("--stdin-filename", metavar="PATH", type=Path, help="where standard input stands")
    selection.add_argument("--force-exclude", action="store_true", help="leave excluded files out even where named")
    selection.add_argument("--show-files", action="store_true", help="list the files that would be checked")
    selection.add_argument("--show-settings", action="store_true", help="show the settings that hold for them")
    selection.add_argument("--jobs", "-j", metavar="N", type=positive, help="processes at most [default: one a core]")
    selection.add_argument("--no-cache", action="store_true", help="neither read nor write the cache")


def run(args: argparse.Namespace) -> int:
    try:
        return _run(args)
    except ConfigurationError as error:
        raise UsageError(str(error)) from None


def _run(args: argparse.Namespace) -> int:
    plan = _plan(args)
    configurations = plan.configurations()
    paths = [Path(path) for path in args.paths or ["."]]
    if "-" in args.paths:
        if args.paths != ["-"]:
            raise UsageError("- is standard input, and stands alone")
        return _standard_input(args, plan, configurations)
    if args.watch:
        return _watch(args, plan, paths)
    found = discover(paths, configurations, force_exclude=args.force_exclude)
    _reject_unknown_codes(plan, configurations, found.files)
    if args.show_files or args.show_settings:
        return _show(args, found, configurations)
    plan = _with_known(args, plan, configurations, found.files)
    reports = list(_streamed(args, plan, configurations, _reports(args, plan, found), len(found.files)))
    if plan.mode != "check":
        forget_stamps()
    if (note := add_callers(plan, reports, args.jobs)) and not args.quiet:
        complain(note)
    if plan.mode != "check":
        from graphmend.cli.checking.cross_file_mends import mend_across

        reports = mend_across(plan, configurations, reports)
    if args.diff:
        return _show_diffs(args, reports, found.problems)
    if not args.quiet and args.output_format in FOR_PEOPLE:
        for hint in hints(reports, configurations, plan):
            complain(hint)
    return _conclude(args, plan, configurations, reports, found.problems)


def _plan(args: argparse.Namespace) -> Plan:
    overrides: dict[str, Any] = {}
    config_files = [text for text in args.config if "=" not in text or Path(text).is_file()]
    if len(config_files) > 1:
        raise UsageError("--config names more than one file")
    for text in args.config:
        if text not in config_files:
            overrides = merged(overrides, parse_override(text))
    given = {
        "select": args.select,
        "ignore": args.ignore,
        "torch-version": args.torch_version,
        "preview": args.preview or None,
        "accept": args.accept,
    }
    overrides.update({name: value for name, value in given.items() if value is not None})
    if config_files and not Path(config_files[0]).is_file():
        raise UsageError(f"--config: {config_files[0]}: no such file, nor KEY=VALUE")
    if args.python is not None and interpreter.at(args.python) is None:
        raise UsageError(f"--python: {args.python} is neither a Python interpreter nor an environment")
    if args.unsafe_fixes and not (args.fix or args.diff):
        complain("--unsafe-fixes does nothing without --fix or --diff")
    return Plan(
        overrides=overrides,
        config_file=Path(config_files[0]) if config_files else None,
        isolated=args.isolated,
        python=args.python,
        mode="diff" if args.diff else "fix" if args.fix else "check",
        unsafe=args.unsafe_fixes,
        mends=_shows_mends(args),
        edits=args.output_format in WITH_EDITS,
        cache=not args.no_cache,
    )


def _watch(args: argparse.Namespace, plan: Plan, paths: list[Path]) -> int:
    from graphmend.cli.checking.watch import rounds

    if plan.mode != "check" or args.output_file or args.output_format not in FOR_PEOPLE:
        raise UsageError(
            "--watch goes with what people read: neither with --fix, --diff, --output-file, nor other formats"
        )

    def find() -> list[Path]:
        return discover(paths, plan.configurations(), force_exclude=args.force_exclude).files

    try:
        for turn in rounds(plan, find):
            if sys.stdout.isatty():
                sys.stdout.write("\x1b[2J\x1b[3J\x1b[H")
            _conclude(args, plan, plan.configurations(), turn.reports, [])
            print(f"Checked in {turn.seconds * 1000:.0f} ms; waiting for changes.", flush=True)
    except KeyboardInterrupt:
        pass
    return 0


def _shows_mends(args: argparse.Namespace) -> bool:
    """Whether the output says what can be mended."""
    if args.write_baseline is not None or args.add_ignores is not None:
        return False
    return args.show_fixes or args.statistics or args.output_format in WITH_MENDS


def _reject_unknown_codes(plan: Plan, configurations: Configurations, paths: list[Path]) -> None:
    seen = {configuration.file: configuration for configuration in map(configurations.of_file, paths)}
    for configuration in seen.values():
        if wrong := unknown(configuration, plan.overrides):
            raise ConfigurationError(wrong[0])


def _with_known(args: argparse.Namespace, plan: Plan, configurations: Configurations, paths: list[Path]) -> Plan:
    """The plan with the baseline and the changed lines, which the check of each file needs where it mends."""
    known = None
    if args.write_baseline is None:
        named = args.baseline or configurations.of_folder(Path.cwd())["baseline"]
        known = baseline.load(Path(named)) if named else None
    changed = None
    if args.diff_from is not None:
        from graphmend.cli.adoption.changed_lines import changed_lines

        changed = changed_lines(args.diff_from, paths[0].parent if paths else Path.cwd())
    return replace(plan, known=known or {}, changed=changed)


def _reports(args: argparse.Namespace, plan: Plan, found: Discovery) -> Iterator[FileReport]:
    from graphmend.cli.progress import watched

    if not found.files and not found.problems:
        complain("no Python files under the given paths")
    noted: set[str] = set()
    for report in watched(check_all(plan, found.files, args.jobs), len(found.files)):
        for note in report.notes:
            if note not in noted and not args.quiet:
                noted.add(note)
                complain(note)
        yield report


def _streamed(
    args: argparse.Namespace, plan: Plan, configurations: Configurations, reports: Iterator[FileReport], files: int
) -> Iterator[FileReport]:
    """The same reports; where the output has a line for each, it is written at once."""
    if args.output_format != "json-lines" or args.output_file is not None:
        yield from reports
        return
    from graphmend.cli.output.json_lines import tell

    for number, report in enumerate(reports, 1):
        settings = configurations.of_file(Path(report.path))
        notes = [note for note in report.notes if note not in settings.notes]
        tell(report.path, shown([report], configurations, plan), (number, files), sys.stdout, notes)
        yield report


def _standard_input(args: argparse.Namespace, plan: Plan, configurations: Configurations) -> int:
    path = absolute(args.stdin_filename or Path("-"))
    try:
        text = reading.decoded(sys.stdin.buffer.read(), path)
    except files.FileProblem as problem:
        raise UsageError(f"standard input {problem}") from None
    if args.show_files or args.show_settings:
        return _show(args, Discovery([path]), configurations)
    _reject_unknown_codes(plan, configurations, [path])
    plan = _with_known(args, plan, configurations, [path])
    report = Checker(plan).check_text(text, path)
    if args.diff:
        return _show_diffs(args, [report], [])
    mended = text.text if report.text is None else report.text
    texts = {str(path): mended}
    data = text.encode(mended) if args.fix else text.data
    notebooks = {str(path): reading.decoded(data, path)}
    if not args.fix:
        return _conclude(args, plan, configurations, [report], [], texts, None, notebooks)
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
    return _conclude(args, plan, configurations, [report], [], texts, sys.stderr, notebooks)


def _conclude(
    args: argparse.Namespace,
    plan: Plan,
    configurations: Configurations,
    reports: list[FileReport],
    problems: list[str],
    texts: dict[str, str] | None = None,
    out: TextIO | None = None,
    notebooks: dict[str, files.FileText] | None = None,
) -> int:
    """From the reports of all files to what is shown, and the exit status."""
    if plan.known:
        plan = replace(plan, known=baseline.moved(dict(plan.known), _keys(reports, configurations, plan)))
    items = shown(reports, configurations, plan)
    problems = [*problems, *(problem for report in reports for problem in report.problems)]
    if args.write_baseline is not None:
        for problem in problems:
            complain(problem)
        _write_baseline(args.write_baseline, reports, items)
        return 2 if problems else 0
    if args.add_ignores is not None:
        items, more = _add_ignores(items, args.add_ignores)
        problems += more
    narrowed = bool(plan.known) or plan.changed is not None
    checked = [report.path for report in reports if report.checked]
    items, cells = in_cells(items, notebooks or {})
    mended = sum(report.mended for report in reports)
    gone = sum(report.gone for report in reports)
    fixed = plan.mode == "fix"
    result = CheckRun(items, problems, checked, mended, gone, narrowed, texts or {}, cells, args.verbose, fixed)
    for problem in problems:
        complain(problem)
    with _output(args, out) as stream:
        _write(args, result, stream)
    return 2 if problems else 1 if items and not args.exit_zero else 0


def _keys(reports: list[FileReport], configurations: Configurations, plan: Plan) -> dict[str, list[str]]:
    """The keys of all findings by the checked file that they stand in, whether a baseline knows them or not."""
    keys: dict[str, list[str]] = {report.path: [] for report in reports}
    for item in shown(reports, configurations, replace(plan, known={}, changed=None)):
        keys[item.finding.path].append(item.finding.key)
    return keys


def _write(args: argparse.Namespace, result: CheckRun, out: TextIO) -> None:
    if args.statistics:
        from graphmend.cli.output import statistics

        statistics.write(result, out, as_json=args.output_format == "json")
        return
    writer(args.output_format)(result, out)
    if args.output_format in FOR_PEOPLE and not args.quiet:
        from graphmend.cli.output.summary import summary

        out.write(summary(result) + "\n")


def _write_baseline(target: Path, reports: list[FileReport], items: list[ReportedFinding]) -> None:
    """Writes what was found as known; files that were not checked keep what the file said of them before."""
    checked = {report.path for report in reports}
    before = baseline.load(target) if target.exists() else {}
    found: dict[str, list[str]] = defaultdict(list)
    for item in items:
        found[item.finding.path].append(item.finding.key)
    kept = {name: keys for name, keys in before.items() if name not in checked and Path(name).exists()}
    number = baseline.save(target, found, kept)
    complain(f"{target}: {_count(number, 'known finding')}")


def _add_ignores(items: list[ReportedFinding], reason: str) -> tuple[list[ReportedFinding], list[str]]:
    from graphmend.cli.adoption.add_ignores import add_ignores

    by_file: dict[str, list[ReportedFinding]] = defaultdict(list)
    for item in items:
        if not item.finding.code.startswith("GM0"):
            by_file[item.finding.path].append(item)
    problems: list[str] = []
    total = 0
    for path, found in by_file.items():
        number, more = add_ignores(Path(path), [item.finding for item in found], reason)
        total, problems = total + number, problems + more
    complain(f"added comments that take {_count(total, 'finding')} back")
    return [item for item in items if item.finding.code.startswith("GM0")], problems


def _show_diffs(args: argparse.Namespace, reports: list[FileReport], problems: list[str]) -> int:
    problems = [*problems, *(problem for report in reports for problem in report.problems)]
    for problem in problems:
        complain(problem)
    with _output(args) as out:
        for report in reports:
            out.write(report.diff)
    mended = sum(report.mended for report in reports)
    if not args.quiet:
        gone = sum(report.gone for report in reports)
        many = f" for {_count(gone, 'finding')}" if gone > mended else ""
        complain(f"would make {_count(mended, 'mend')}{many}" if mended else "nothing to mend")
    return 2 if problems else 1 if mended and not args.exit_zero else 0


def _show(args: argparse.Namespace, found: Discovery, configurations: Configurations) -> int:
    from graphmend.cli.checking.show import show_files, show_settings

    for problem in found.problems:
        complain(problem)
    with _output(args) as out:
        if args.show_files:
            show_files(found.files, out)
        if args.show_settings:
            show_settings(found.files, configurations, out)
    return 2 if found.problems else 0


@contextlib.contextmanager
def _output(args: argparse.Namespace, out: TextIO | None = None) -> Iterator[TextIO]:
    """Where results go. A file is replaced at the end, whole."""
    if args.output_file is None:
        yield out or sys.stdout
        return
    buffer = io.StringIO()
    yield buffer
    try:
        files.replace(args.output_file, buffer.getvalue().encode("utf-8", "replace"))
    except files.FileProblem as problem:
        raise UsageError(f"{args.output_file}: {problem}") from None


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

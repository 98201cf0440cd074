"""`graphmend verify`: lets TorchDynamo show the breaks that really happen in targets, or in any command after `--`."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console
from rich.markup import escape

from graphmend.cli.failures import UsageError, complain
from graphmend.cli.option_values import device, positive, seconds, words
from graphmend.cli.verifying import break_baseline
from graphmend.cli.verifying.requests import request, resolve
from graphmend.cli.verifying.static_findings import Judged, Mending, Static
from graphmend.dynamo.report import Break, Report
from graphmend.dynamo.requests import Request
from graphmend.dynamo.service import Service
from graphmend.dynamo.verdict import judge
from graphmend.workspace.config import Configuration, Configurations
from graphmend.workspace.options import ConfigurationError

if TYPE_CHECKING:
    from graphmend.dynamo.watched_command import Watched

FORMATS = ("full", "json", "html")
SECONDS = 120.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s [OPTIONS] [TARGET ...] [-- COMMAND ...]"
    parser.add_argument(
        "targets",
        metavar="TARGET",
        nargs="*",
        help="file.py, file.py:Class, file.py:function or package.module:Name; default: the configured targets",
    )
    parser.add_argument("--mend", action="store_true", help="check the mended text too and compare both")
    parser.add_argument("--unsafe-fixes", action="store_true", help="with --mend: mends that are not safe as well")
    parser.add_argument(
        "--accept", metavar="KINDS", type=words, help="differences that a safe mend may have, such as rounding,dtype"
    )
    parser.add_argument("--bench", action="store_true", help="measure the times of eager and compiled calls")
    parser.add_argument(
        "--batches",
        metavar="N",
        type=positive,
        default=0,
        help="count graphs over N differing batches",
    )
    parser.add_argument("--lengths", action="store_true", help="with --batches: of other lengths as well")
    parser.add_argument("--device", type=device, default="auto", help="auto (CUDA where it works), cpu or cuda[:N]")
    parser.add_argument("--python", metavar="PATH", help="the interpreter whose torch is used")
    parser.add_argument("--timeout", type=seconds, metavar="S", help="seconds for one file (120), or for COMMAND")
    parser.add_argument("--output-format", choices=FORMATS, default="full")
    parser.add_argument("--from-log", metavar="FILE", help="show the breaks of a TORCH_LOGS file or TORCH_TRACE folder")
    parser.add_argument("--baseline", metavar="FILE", type=Path, help="only breaks that this file does not know count")
    parser.add_argument("--write-baseline", metavar="FILE", type=Path, help="write what breaks now as known")
    parser.add_argument("--verbose", "-v", action="store_true", help="show every hint, run and difference, lines uncut")
    _split_command(parser)


def _split_command(parser: argparse.ArgumentParser) -> None:
    """Keeps what follows `--` apart: argparse drops the `--` and would count a command's words among the targets."""
    inner = parser.parse_args

    def parse_args(  # type: ignore[no-untyped-def]
        args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ):
        words = list(sys.argv[1:] if args is None else args)
        cut = words.index("--") if "--" in words else len(words)
        parsed = inner(words[:cut], namespace)
        parsed.command = words[cut + 1 :] if cut < len(words) else None
        return parsed

    parser.parse_args = parse_args  # type: ignore[assignment]


def run(args: argparse.Namespace) -> int:
    if args.lengths and not args.batches:
        raise UsageError("--lengths needs --batches")
    if args.baseline is not None:
        break_baseline.load(args.baseline)  # before anything runs for hours
    if args.command is not None:
        return _watch(args)
    if args.from_log is not None:
        return _read_log(args)
    try:
        configurations = Configurations({"accept": args.accept} if args.accept else {}, origin="command line")
        jobs = _jobs(args, configurations)
    except ConfigurationError as error:
        raise UsageError(str(error)) from None
    reports = asyncio.run(_check(args, [job.request for job in jobs]))
    judged = [job.text.judged(r) if r.problem is None else [] for job, r in zip(jobs, reports, strict=True)]
    every = [item for report in reports for item in (*report.breaks, *(report.after.breaks if report.after else ()))]
    if args.write_baseline is not None:
        return _write_baseline(args.write_baseline, every, [line for r in reports for line in _failures(r)])
    if args.baseline is not None:
        reports = list(map(break_baseline.Known(args.baseline, every).report, reports))
    _write(args, reports, judged, [job.mending for job in jobs])
    for line in dict.fromkeys(line for report in reports for line in _failures(report)):
        complain(line)
    return status(reports)


def status(reports: Sequence[Report]) -> int:
    """2 where something could not be checked, else 1 where a graph breaks (after mending, if asked for) or something
    differs that no mend names, else 0.
    """
    if any(True for report in reports for _ in _failures(report)):
        return 2
    last = [report.after or report for report in reports]
    compared = [(target.comparison, report.named) for report in last for target in report.targets]
    differs = any(found is not None and not judge(found, named).passes for found, named in compared)
    return int(differs or any(report.breaks for report in last))


def _failures(report: Report) -> list[str]:
    """One line for each thing that could not be checked."""
    if report.problem is not None:
        return [report.problem]
    lines = [target.problem for target in report.targets if target.problem is not None]
    return lines + (_failures(report.after) if report.after is not None else [])


# requests


class _Job(NamedTuple):
    """One file: what is run, what the analysis says of it, and its mends where they were asked for."""

    request: Request
    text: Static
    mending: Mending | None


def _jobs(args: argparse.Namespace, configurations: Configurations) -> list[_Job]:
    """One for each file, in the order of the command line."""
    names: dict[Path, list[str]] = {}
    for text in args.targets or _configured_targets(configurations):
        path, name = resolve(text, args.python)
        names.setdefault(path, [])
        if name:
            names[path].append(name)
    if not names:
        raise UsageError("nothing to verify: name a TARGET, declare [[tool.graphmend.targets]], or give -- COMMAND")
    return [_job(args, path, tuple(found), configurations) for path, found in names.items()]


def _job(args: argparse.Namespace, path: Path, names: tuple[str, ...], configurations: Configurations) -> _Job:
    request = _request(args, path, names, configurations.of_file(path))
    text = Static(path, configurations, args.python, request.targets)
    if not args.mend:
        return _Job(request, text, None)
    mending = text.mended(args.unsafe_fixes)
    changed = mending.text != text.source.text
    if changed:
        request = replace(request, mended={str(path): mending.text}, named=mending.named)
    return _Job(request, text, mending)


def _request(args: argparse.Namespace, path: Path, names: tuple[str, ...], configuration: Configuration) -> Request:
    made = request(path, names, configuration, args.python, os.getcwd(), args.timeout or SECONDS)
    return replace(made, device=args.device, bench=args.bench, batches=args.batches, lengths=args.lengths)


def _configured_targets(configurations: Configurations) -> list[str]:
    """The targets that the configuration of the current folder declares."""
    configuration = configurations.of_folder(Path.cwd())
    return [_from_root(entry["target"], configuration.root) for entry in configuration["targets"]]


def _from_root(target: str, root: Path) -> str:
    place, colon, name = target.rpartition(":")
    return f"{root / place}{colon}{name}" if place.endswith(".py") else target


# running and writing


async def _check(args: argparse.Namespace, requests: Sequence[Request]) -> list[Report]:
    service = Service()
    try:
        with Console(stderr=True).status("starting the check") as shown:  # on a terminal only
            return [await service.check(request, lambda stage: shown.update(escape(stage))) for request in requests]
    finally:
        await service.close()


def _write(
    args: argparse.Namespace,
    reports: Sequence[Report],
    judged: Sequence[list[Judged]],
    mendings: Sequence[Mending | None],
) -> None:
    if args.output_format == "json":
        from graphmend.cli.output.verify import json

        json.write(reports, judged, sys.stdout)
    elif args.output_format == "html":
        from graphmend.cli.output.verify import html

        html.write(reports, sys.stdout)
    else:
        from graphmend.cli.output.verify import full

        full.write(reports, judged, mendings, sys.stdout, verbose=args.verbose)


def _read_log(args: argparse.Namespace) -> int:
    """Shows the breaks that a file of torch's own tells of."""
    from graphmend.dynamo import torch_logs
    from graphmend.dynamo.watched_command import Watched

    if args.targets or args.mend or args.bench or args.batches:
        raise UsageError("--from-log takes no TARGET, --mend, --bench or --batches")
    try:
        text = torch_logs.read(Path(args.from_log))
    except OSError as error:
        raise UsageError(f"{args.from_log}: {error.strerror}") from None
    return _conclude_watched(args, Watched((), None, breaks=torch_logs.parse(text, torch_logs.below(os.getcwd()))))


def _watch(args: argparse.Namespace) -> int:
    """Runs a command with every `torch.compile` in it watched."""
    from graphmend.dynamo import watched_command

    if not args.command:
        raise UsageError("no command after --")
    if args.targets or args.mend or args.bench or args.batches:
        raise UsageError("a command after -- takes no TARGET, --mend, --bench or --batches")
    sys.stdout.flush()
    watched = watched_command.run(args.command, timeout=args.timeout, quiet=args.output_format != "full")
    return _conclude_watched(args, watched)


def _conclude_watched(args: argparse.Namespace, watched: Watched) -> int:
    problems = [watched.problem] if watched.problem is not None else []
    if args.write_baseline is not None:
        return _write_baseline(args.write_baseline, watched.breaks, problems)
    if args.baseline is not None:
        watched = break_baseline.Known(args.baseline, watched.breaks).watched(watched)
    _write_watched(args, watched)
    for problem in problems:
        complain(problem)
    return 2 if problems else int(bool(watched.breaks))


def _write_baseline(path: Path, breaks: Sequence[Break], problems: Sequence[str]) -> int:
    """Writes what breaks now as known. Where something could not be checked, nothing: it would look new later."""
    for problem in dict.fromkeys(problems):
        complain(problem)
    if problems:
        complain(f"{path} was not written")
        return 2
    number = break_baseline.write(path, breaks)
    complain(f"{path}: {number} known break{'s' * (number != 1)}")
    return 0


def _write_watched(args: argparse.Namespace, watched: Watched) -> None:
    if args.output_format == "json":
        from graphmend.cli.output.verify import json

        json.write_watched(watched, sys.stdout)
    elif args.output_format == "html":
        from graphmend.cli.output.verify import html

        html.write_watched(watched, sys.stdout)
    else:
        from graphmend.cli.output.verify import full

        full.write_watched(watched, sys.stdout, verbose=args.verbose)

"""`graphmend sweep`: verifies many targets, plain and mended, here or on a cluster, and ends with a report."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from textwrap import shorten

from graphmend.cli.checking.process_pool import available_cores
from graphmend.cli.control_characters import printable
from graphmend.cli.failures import UsageError, complain
from graphmend.cli.main import INTERRUPTED
from graphmend.cli.option_values import device, positive, seconds, share, size, words
from graphmend.cli.output.sweep import reports
from graphmend.cli.sweeping.outcome import OUTCOMES
from graphmend.cli.sweeping.results import Line, NotWritten, Results
from graphmend.cli.sweeping.targets import Targets, inputs_of
from graphmend.cli.sweeping.task import Options, Task, torch_version
from graphmend.cli.verifying.requests import find_module
from graphmend.workspace.analysed_file import executable_for
from graphmend.workspace.config import Configurations, absolute
from graphmend.workspace.files import FileProblem
from graphmend.workspace.options import ConfigurationError

Lines = Generator[Line, None, None]

#: outcomes after which nothing is left to do
_GOOD = ("one-graph", "mended")

_TERMINATED = 128 + signal.SIGTERM

#: characters of a problem on the terminal; the results have all of it
_SHOWN = 160


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Runs many models, each in a process of its own, as they are and mended, and writes a line of JSON for each as "
        "it ends. Begun again with the same --output it goes on where it stopped. In the end an HTML report stands "
        "beside the results: which models break where, the most frequent causes first, before and after mending."
    )
    add = parser.add_argument
    add(
        "targets",
        metavar="TARGET",
        nargs="*",
        help="a folder, file.py, file.py:Class, a package, package.module, package.module:Class, or a text file that "
        "lists such targets, one a line; without any the report is written of what there is",
    )
    add(
        "--output",
        "-o",
        metavar="FILE",
        type=Path,
        default=Path("graphmend-sweep.jsonl"),
        help="the results (graphmend-sweep.jsonl); the report, and Parquet where pyarrow is installed, stand beside it",
    )
    add("--inputs", metavar="FILE", type=Path, help="example inputs: a TOML file of [[targets]] (target, init, inputs)")
    add(
        "--timeout",
        metavar="S",
        type=seconds,
        default=120.0,
        help="seconds for each run of a target, and mending it (120)",
    )
    add("--memory", metavar="SIZE", type=size, help="memory of one target, such as 8G (its share of three quarters)")
    add("--device", type=device, default="auto", help="auto (CUDA where it works), cpu or cuda[:N]")
    add("--python", metavar="PATH", help="the interpreter whose torch is used")
    add("--again", action="store_true", help="run all targets again, those that have a result too")
    add("--retry-failed", action="store_true", help="run those targets again that could not be run")

    how = parser.add_argument_group("what is run").add_argument
    how("--plain", action="store_true", help="the models as they are, without mends")
    how("--mend", metavar="PACKAGE", action="append", default=[], help="mend this package too; may be repeated")
    how("--unsafe-fixes", action="store_true", help="mends that are not safe as well")
    how("--accept", metavar="KINDS", type=words, default=[], help="differences that a safe mend may have: rounding,...")
    how("--batches", metavar="N", type=positive, default=0, help="count graphs over N differing batches")
    how("--lengths", action="store_true", help="with --batches: of other lengths as well")

    where = parser.add_argument_group("where").add_argument
    where("--jobs", "-j", metavar="N", type=positive, help="targets at once on this machine (one for each core)")
    where("--address", metavar="ADDRESS", help="run on the Ray cluster at HOST:PORT, or auto: the one that this is in")
    where("--cpus", metavar="N", type=share, help="with --address: cores that Ray keeps for each target (1)")
    where("--gpus", metavar="N", type=share, help="with --address: GPUs for each target, such as 0.25 (0)")
    where("--ship", metavar="FOLDER", type=Path, help="with --address: have Ray copy this folder to every node")


def run(args: argparse.Namespace) -> int:
    if args.lengths and not args.batches:
        raise UsageError("--lengths needs --batches")
    if args.address is None and (args.cpus or args.gpus or args.ship):
        raise UsageError("--cpus, --gpus and --ship need --address")
    if args.address is not None and args.jobs:
        raise UsageError("--jobs is for this machine; how many targets run at once on a cluster is for Ray to say")
    if args.output.suffix.lower() in reports.SUFFIXES:
        raise UsageError(f"--output {args.output} names a report: the results are lines of JSON, name them .jsonl")
    if not args.targets and not args.output.is_file():
        raise UsageError(f"nothing to sweep: name a TARGET (there is no {args.output} to report on)")
    _check_options(args)
    with closing(Results(args.output)) as results:
        if not args.targets and not results.lines:
            raise UsageError(f"nothing to report on: {args.output} has no line; name a TARGET")
        if results.repaired:
            complain(f"{results.path}: its last line was cut off in the middle, and is removed")
        before = signal.signal(signal.SIGTERM, _told_to_end)
        try:
            return _sweep(args, results)
        except NotWritten as error:
            complain(f"{error}; {_kept(results)}")
            return 2
        except _Ended:
            complain(f"told to end; {_kept(results)}")
            return _TERMINATED
        except KeyboardInterrupt:
            complain(f"interrupted; {_kept(results)}")
            return INTERRUPTED
        finally:
            signal.signal(signal.SIGTERM, before)


class _Ended(BaseException):
    """The queue of a cluster, or somebody, ended the sweep by a signal."""


def _told_to_end(*_: object) -> None:
    raise _Ended


def _sweep(args: argparse.Namespace, results: Results) -> int:
    tasks, problems = _tasks(args)
    for problem in problems:
        complain(problem)
    left = _left(args, tasks, results)
    if len(left) < len(tasks):
        print(f"{len(tasks) - len(left)} of {len(tasks)} targets have a result already", flush=True)
    for number, line in enumerate(_running(args, left), 1):
        results.add(line)
        print(f"{number:{len(str(len(left)))}}/{len(left)} {printable(_told(line))}", flush=True)
    lines = sorted(results.lines.values(), key=lambda line: str(line["target"]))
    try:
        written = reports.write(args.output, lines)
    except FileProblem as problem:
        raise NotWritten(f"the report {problem}") from None
    print(f"{_summary(lines)}\n{', '.join(map(str, written))}")
    return 2 if problems else status(lines)


def status(lines: Iterable[Line]) -> int:
    """1 where a graph breaks (after mending, if asked for), a result differs or a target could not be run, else 0."""
    return int(any(line["outcome"] not in _GOOD for line in lines))


def _kept(results: Results) -> str:
    count = len(results.lines)
    found, are = ("result", "is") if count == 1 else ("results", "are")
    return f"the {count} {found} in {results.path} {are} kept, and the same command goes on from there"


# what is run


def _check_options(args: argparse.Namespace) -> None:
    """What would fail for each target alike is refused before the first one."""
    try:
        Configurations({"accept": args.accept} if args.accept else {}, origin="--accept").of_folder(Path.cwd())
    except ConfigurationError as error:
        raise UsageError(str(error)) from None
    if args.address is not None:  # the nodes have other packages and interpreters
        return
    if args.python is not None and shutil.which(executable_for(args.python, Path.cwd())) is None:
        raise UsageError(f"--python {args.python} does not exist or cannot be run")
    for package in args.mend:
        if find_module(package, args.python) is None:
            raise UsageError(f"--mend {package}: the package cannot be found")


def _options(args: argparse.Namespace) -> Options:
    return Options(
        mended=not args.plain,
        unsafe=args.unsafe_fixes,
        accept=tuple(args.accept),
        packages=tuple(args.mend),
        batches=args.batches,
        lengths=args.lengths,
        device=args.device,
        timeout=args.timeout,
        memory=args.memory or (_share(_jobs(args)) if args.address is None else None),
        python=args.python,
        torch=_torch(args) if args.address is None else None,
    )


def _torch(args: argparse.Namespace) -> str | None:
    return torch_version(executable_for(args.python, Path.cwd() / "any.py"))


def _share(jobs: int) -> int | None:
    """What a target may hold of this machine's memory, so that all that run at once have enough."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 3 // 4 // jobs
    except (AttributeError, ValueError, OSError):  # Windows
        return None


def _jobs(args: argparse.Namespace) -> int:
    return int(args.jobs or available_cores())


def _tasks(args: argparse.Namespace) -> tuple[list[Task], list[str]]:
    if not args.targets:
        return [], []
    try:
        inputs = inputs_of(args.inputs) if args.inputs is not None else ()
        targets = Targets(absolute(args.ship or Path()), _options(args), inputs)
        tasks = targets.tasks(args.targets)
    except ConfigurationError as error:
        raise UsageError(str(error)) from None
    if not tasks:
        raise UsageError(f"nothing to run in {', '.join(args.targets)}: no nn.Module class with a forward")
    return tasks, targets.problems


def _left(args: argparse.Namespace, tasks: Sequence[Task], results: Results) -> list[Task]:
    """The tasks that have no result yet. Results that were made otherwise are not mixed with new ones: what stays in
    the file has the same options.
    """
    replaced = {task.target for task in tasks} if args.again else set()
    for target, line in results.lines.items() if tasks else ():
        other = _other(tasks[0].options, line) if target not in replaced else ""
        if other:
            more = "" if args.again else ", or say --again"
            raise UsageError(f"{results.path} has results with another {other} ({target}): name another --output{more}")
    if args.again:
        return list(tasks)
    known = {
        target for target, line in results.lines.items() if not (args.retry_failed and line["outcome"] == "failed")
    }
    return [task for task in tasks if task.target not in known]


def _other(options: Options, line: Line) -> str:
    """The first option that decides on results and was another one when a line was made."""
    made = line["options"]
    return next((name for name, value in options.deciding().items() if made.get(name) != value), "")


def _running(args: argparse.Namespace, tasks: Sequence[Task]) -> Iterator[Line]:
    if not tasks:
        return
    with closing(_on_a_cluster(args, tasks) if args.address is not None else _here(args, tasks)) as lines:
        yield from lines


def _here(args: argparse.Namespace, tasks: Sequence[Task]) -> Lines:
    from graphmend.cli.sweeping import local_pool

    return local_pool.run_all(tasks, _jobs(args))


def _on_a_cluster(args: argparse.Namespace, tasks: Sequence[Task]) -> Lines:
    from graphmend.cli.sweeping import ray_cluster

    if args.ship is not None:
        outside = next((task.place for task in tasks if Path(task.place).is_absolute()), None)
        if outside is not None:
            raise UsageError(f"{outside} does not lie in {args.ship}, which Ray copies")
        tasks = [task._replace(root="") for task in tasks]
    folder = str(absolute(args.ship)) if args.ship is not None else None
    cluster = ray_cluster.Cluster(args.address, args.cpus or 1.0, args.gpus or 0.0, args.memory, folder)
    return ray_cluster.run_all(tasks, cluster)


# what is told


def _told(line: Line) -> str:
    took = line["run"]["seconds"]
    time = f"{took:6.1f} s" if took is not None else " " * 8
    breaks = _breaks(line)
    reason = f"{line['reason']}: " if line["reason"] else ""
    problem = f"  {shorten(reason + line['problem'], _SHOWN)}" if line["problem"] else ""
    return f"{line['outcome']:9} {time}  {line['target']}{breaks}{problem}"


def _breaks(line: Line) -> str:
    before = sum(model["breaks"] for model in line["models"])
    after = sum(model["breaks_mended"] or 0 for model in line["models"])
    if not before and not after:
        return ""
    return (
        f"  breaks: {before}" if line["outcome"] == "breaks" and before == after else f"  breaks: {before} -> {after}"
    )


def _summary(lines: Sequence[Line]) -> str:
    counts = Counter(line["outcome"] for line in lines)
    found = ", ".join(f"{counts[name]} {name}" for name in OUTCOMES if counts[name])
    return f"{len(lines)} target{'s' * (len(lines) != 1)}: {found}"

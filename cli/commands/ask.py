"""`graphmend ask`: a language model of the user's choice is asked about breaks that no rule mends.

Nothing is sent without `--model`, and what comes back is shown only after it passed every gate.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from graphmend.cli.asking import places, show
from graphmend.cli.asking.places import Break, Done, File
from graphmend.cli.failures import UsageError, complain
from graphmend.cli.verifying.requests import declared
from graphmend.dynamo.report import Report
from graphmend.dynamo.requests import Request
from graphmend.dynamo.service import Service
from graphmend.model import key
from graphmend.model.ask import Answer, ask
from graphmend.model.endpoint import Endpoint, Unanswered
from graphmend.model.known_answers import Remembered
from graphmend.workspace.analysed_file import executable_for
from graphmend.workspace.config import Configurations
from graphmend.workspace.options import OPTIONS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("places", metavar="FILE[:LINE]", nargs="+", help="a file, or one line of it that breaks")
    parser.add_argument("--model", metavar="URL#NAME", help="the server and the model: http://127.0.0.1:11434/v1#qwen")
    parser.add_argument(
        "--show", action="store_true", help="show the text that would be sent, and to whom; send nothing"
    )
    parser.add_argument("--write", action="store_true", help="write what passed every gate")
    parser.add_argument("--yes", action="store_true", help="send to a host that is not this machine without asking")
    parser.add_argument("--key-variable", metavar="NAME", help="the environment variable that holds the key")
    parser.add_argument(
        "--key-file", metavar="FILE", type=Path, help="a file, readable by you alone, that holds the key"
    )
    parser.add_argument("--fresh", action="store_true", help="send questions that were answered before, too")
    parser.add_argument("--tries", type=int, help="answers that are asked for about one break (3)")
    parser.add_argument("--max-requests", type=int, help="requests that are sent in all (20)")
    parser.add_argument("--timeout", type=float, metavar="S", help="seconds for one answer, and for one check (120)")
    parser.add_argument(
        "--rounding", choices=("named", "refused"), help="what becomes of answers that differ by rounding"
    )
    parser.add_argument(
        "--unconfined", action="store_true", help="run answers where the system has no means to confine"
    )
    parser.add_argument("--device", default="auto", help="auto (CUDA where it works), cpu or cuda[:N]")
    parser.add_argument("--python", metavar="PATH", help="the interpreter whose torch is used")
    parser.add_argument("--output-format", choices=("full", "json"), default="full")


def run(args: argparse.Namespace) -> int:
    asked = places.read(args.places, Configurations(), args.python)
    for file in asked:
        if not file.configuration["model-allowed"]:
            raise UsageError(f"{file.path}: the project says model-allowed = false")
    if args.model is None and not args.show:
        return show.offered([each for file in asked for each in file.wanted()], sys.stdout)
    endpoint = None if args.model is None else _endpoint(args)
    breaks = [each for file in asked for each in file.wanted()]
    if args.show:
        show.questions(breaks, endpoint, sys.stdout)
        return 0
    assert endpoint is not None
    _confirmed(args, endpoint, breaks)
    gc.freeze()  # the first looks stay to the end: a collection while an answer is judged would go through all of them
    done, problem = asyncio.run(_ask(args, endpoint, asked))
    if args.write:
        for file in asked:
            file.write()
    (show.json_of if args.output_format == "json" else show.answers)(done, endpoint, sys.stdout)
    if problem:
        complain(problem)
        return 2
    return int(any(one.answer.fix is None for one in done))


def _endpoint(args: argparse.Namespace) -> Endpoint:
    url, _, name = args.model.partition("#")
    if not name:
        raise UsageError("--model needs the model's name behind a #: http://127.0.0.1:11434/v1#qwen2.5-coder:14b")
    try:
        secret = key.from_variable(args.key_variable or OPTIONS["model.key-variable"].default)
        if args.key_file is not None:
            secret = key.from_file(args.key_file)
        return Endpoint(
            url,
            name,
            secret,
            seconds=args.timeout or OPTIONS["model.timeout-seconds"].default,
            most_tokens=OPTIONS["model.max-tokens"].default,
        )
    except (Unanswered, key.KeyProblem) as error:
        raise UsageError(str(error)) from None


def _confirmed(args: argparse.Namespace, endpoint: Endpoint, breaks: Sequence[Break]) -> None:
    """Source leaves this machine only where somebody said so."""
    if endpoint.is_local or args.yes or not breaks:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{endpoint.host} is not this machine: --show tells what would be sent, --yes sends it")
    characters = sum(each.characters for each in breaks)
    sys.stderr.write(f"Send {characters:,} characters of {len(breaks)} functions to {endpoint.host}? [y/N] ")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UsageError("nothing was sent")


async def _ask(args: argparse.Namespace, endpoint: Endpoint, files: Sequence[File]) -> tuple[list[Done], str]:
    """What became of each question, and why not all were asked. A mend that was found stands when the next is asked."""
    most = args.max_requests or OPTIONS["model.requests"].default
    tries = args.tries or OPTIONS["model.tries"].default
    service, done = Service(), list[Done]()
    try:
        for file in files:
            while (each := file.next_break()) is not None:
                left = most - endpoint.usage.requests
                if left <= 0:
                    return done, f"{most} requests were sent; --max-requests allows more"
                answer = await _answer(args, endpoint, service, each, min(tries, left))
                done.append(Done(each, answer))
                if answer.unanswered:
                    return done, answer.problem
                if answer.fix is not None:
                    file.take(answer.text)
    except asyncio.CancelledError:
        endpoint.cancel()
        raise
    finally:
        await service.close()
    return done, ""


async def _answer(args: argparse.Namespace, endpoint: Endpoint, service: Service, each: Break, tries: int) -> Answer:
    file = each.file
    path, configuration = str(file.path), file.configuration

    async def verify(mended: str) -> Report:
        return await service.check(
            Request(
                path=path,
                texts={path: file.source.text},
                mended={path: mended},
                confined=not args.unconfined,
                unproven=True,
                declared=declared(configuration),
                device=args.device,
                timeout=args.timeout or OPTIONS["model.timeout-seconds"].default,
                interpreter=executable_for(args.python, file.path),
                roots=(str(configuration.root),) if configuration.file is not None else (),
                cwd=os.getcwd(),
            )
        )

    rounding = (args.rounding or OPTIONS["model.rounding"].default) == "named"
    model = Remembered(endpoint, fresh=args.fresh)
    return await ask(
        each.asked, model, endpoint.name, file.look, verify, tries=tries, rounding=rounding, tell=show.progress
    )

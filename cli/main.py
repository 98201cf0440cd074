"""The command `graphmend`: finds the subcommand, runs it, and turns whatever happens into an exit status.

Each subcommand is a module with `add_arguments(parser)` and `run(args) -> status`, imported only when it is asked for.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

from graphmend import __version__
from graphmend.cli.failures import UsageError, complain, internal_error

COMMANDS = {
    "check": "find the places where torch.compile will break its graph, and mend them",
    "verify": "let TorchDynamo show the breaks that really happen",
    "sweep": "verify many models, here or on a cluster, and report which break where",
    "run": "run a program, mending modules while they are imported",
    "ask": "ask a language model for mends that no rule makes, and let the gates judge its answers",
    "mcp": "the tools for assistants that edit code (Model Context Protocol)",
    "rule": "explain a rule",
    "server": "the language server",
}

#: other names of commands
ALIASES = {"explain": "rule"}

INTERRUPTED = 130
CLOSED_PIPE = 141

#: what the operating system says where a disk is full
NO_ROOM = frozenset({errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)})


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as every other failure does."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}{self._nearest(message)} (see {self.prog} --help)\n")

    def _nearest(self, message: str) -> str:
        wrong = re.match(r"unrecognized arguments: (--[\w-]+)|argument COMMAND: invalid choice: '([^']*)'", message)
        if wrong is None:
            return ""
        if wrong[2] and (os.path.exists(wrong[2]) or wrong[2].endswith(".py")):
            return f"; did you mean `graphmend check {wrong[2]}`?"
        from graphmend.workspace.options import did_you_mean

        return did_you_mean(wrong[1] or wrong[2], self._option_string_actions if wrong[1] else COMMANDS)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        status = _run(arguments)
        if sys.stdout is not None:  # closed before the command began (`>&-`)
            sys.stdout.flush()
        return status
    except SystemExit as stop:  # argparse: help, version, wrong use
        return stop.code if isinstance(stop.code, int) else 2 if stop.code else 0
    except UsageError as error:
        complain(str(error))
        return 2
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        return closed_pipe()
    except Exception as error:
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            complain(f"the output cannot be written: {str(error.strerror).lower()}")
            return 2
        if os.environ.get("GRAPHMEND_DEBUG"):
            raise
        complain(internal_error(error))
        return 2


def _run(arguments: list[str]) -> int:
    said = arguments[0] if arguments else ""
    name = ALIASES.get(said, said)
    if name not in COMMANDS:
        return _top_level(arguments)
    if sys.stdout is None and name != "run":  # closed (`>&-`): what is written is for nobody; a program finds it so
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    module = importlib.import_module(f"graphmend.cli.commands.{name}")
    parser = Parser(prog=f"graphmend {said}", description=f"{COMMANDS[name][:1].upper()}{COMMANDS[name][1:]}.")
    module.add_arguments(parser)
    status: int = module.run(parser.parse_args(arguments[1:]))
    return status


def _top_level(arguments: list[str]) -> int:
    parser = Parser(
        prog="graphmend",
        description="Finds, explains and mends the graph breaks of torch.compile.",
        epilog="graphmend COMMAND --help shows a command's options.",
    )
    parser.add_argument("--version", "-V", action="version", version=f"graphmend {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        others = [other for other, meant in ALIASES.items() if meant == name]
        commands.add_parser(name, help=summary, add_help=False, aliases=others)
    parser.parse_args(arguments)
    raise AssertionError("every known command is dispatched before")


def closed_pipe() -> int:
    """Whoever read our output has gone (`| head`): end quietly, also when Python flushes its buffers at exit."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    return CLOSED_PIPE

"""`graphmend mcp`: GraphMend's tools for assistants that edit code, by the Model Context Protocol."""

from __future__ import annotations

import argparse
from pathlib import Path

from graphmend.cli.failures import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", metavar="FOLDER", nargs="+", type=Path, help="the folders that may be asked about")
    parser.add_argument("--allow-run", action="store_true", help="also offer verify, which runs the project's code")
    parser.add_argument("--python", metavar="PATH", help="the interpreter whose torch is used")


def run(args: argparse.Namespace) -> int:
    from graphmend.assistant.folders import Folders

    for folder in args.folders:
        if not folder.is_dir():
            raise UsageError(f"{folder} is no folder")
    try:
        from graphmend.assistant.server import serve
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("mcp", "mcp_types", "pydantic"):
            raise
        raise UsageError("mcp needs the extra graphmend[mcp]: pip install 'graphmend[mcp]'") from None
    serve(Folders(args.folders), runs=args.allow_run, python=args.python)
    return 0

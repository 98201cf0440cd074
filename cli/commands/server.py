"""`graphmend server`: the language server, on standard input and output or for one client on a socket."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--stdio", action="store_true", help="use standard input and output (the default)")
    parser.add_argument("--tcp", metavar="HOST:PORT", type=_address, help="wait for one client at this address instead")


def run(args: argparse.Namespace) -> int:
    from graphmend.server import main  # pygls and lsprotocol take a quarter of a second to import

    return main.serve_stdio() if args.tcp is None else main.serve_tcp(*args.tcp)


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return host.strip("[]") or "127.0.0.1", int(port)

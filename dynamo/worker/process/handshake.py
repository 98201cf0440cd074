"""The handshake: versions of what the worker runs on, or why no check can run here. Importing torch is the test."""

from __future__ import annotations

import os
import platform
import sys

from .. import versions
from .channel import Message

PROTOCOL = 1


def handshake() -> Message:
    """Versions of what the worker runs on. `problem` says in one line why no check can run here."""
    hello: Message = {
        "hello": PROTOCOL,
        "python": platform.python_version(),
        "executable": sys.executable,
        "torch": None,
        "cuda": None,
        "fork": can_fork(),
        "problem": None,
    }
    try:
        import torch
    except ModuleNotFoundError as error:
        missing = error.name or "torch"
        hello["problem"] = (
            f"{sys.executable} has no torch"
            if missing.split(".")[0] == "torch"
            else f"torch cannot be imported in {sys.executable}: it needs the missing module {missing}"
        )
        return hello
    except BaseException as error:
        hello["problem"] = f"torch cannot be imported in {sys.executable}: {type(error).__name__}: {one_line(error)}"
        return hello
    version = getattr(torch, "__version__", None)
    if version is None or not hasattr(torch, "compile"):
        where = getattr(torch, "__file__", None) or "a folder without code"
        hello["problem"] = f"the torch that {sys.executable} imports is not PyTorch, or is too old ({where})"
        return hello
    hello["torch"] = str(version)
    hello["cuda"] = getattr(getattr(torch, "version", None), "cuda", None)
    if refusal := versions.refusal(str(version)):
        hello["problem"] = f"torch {version} in {sys.executable} is not checked: {refusal}"
    return hello


def can_fork() -> bool:
    """macOS has frameworks that do not survive a fork, Windows has none."""
    return hasattr(os, "fork") and sys.platform != "darwin"


def one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:400]

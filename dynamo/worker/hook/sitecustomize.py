"""Put on PYTHONPATH by `graphmend verify -- COMMAND`: watches TorchDynamo in any Python process without changing the
program.

Costs nothing until the process imports Dynamo itself; then the recorder is loaded, by path and under a private name.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys
from typing import Any

WATCHED = "torch._dynamo.convert_frame"
"""The last module of Dynamo that the recorder needs."""

_here = os.path.dirname(os.path.abspath(__file__))


class _Finder:
    """Lets the other finders find the watched module, and starts the recorder once it is loaded."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != WATCHED:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            _start_after(spec.loader)
        return spec


def _start_after(loader: Any) -> None:
    inner = loader.exec_module

    def exec_module(module: Any) -> None:
        inner(module)
        try:
            _start()
        except Exception as error:
            print(f"graphmend: this process is not watched: {type(error).__name__}: {error}", file=sys.stderr)

    loader.exec_module = exec_module


def _start() -> None:
    package = "_graphmend_worker"
    folder = os.path.dirname(_here)
    spec = importlib.util.spec_from_file_location(
        package, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    assert spec is not None
    sys.modules[package] = importlib.util.module_from_spec(spec)
    importlib.import_module(package + ".recording.watching").start()


def _next_sitecustomize() -> None:
    """The module of this name that the process would have had without us."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != _here]
    this = sys.modules.pop("sitecustomize", None)
    try:
        importlib.import_module("sitecustomize")
    except ImportError:
        if this is not None:
            sys.modules["sitecustomize"] = this


if os.environ.get("GRAPHMEND_WATCH"):
    sys.meta_path.insert(0, _Finder())
_next_sitecustomize()

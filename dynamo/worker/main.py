"""Starts the worker. Usage: python PATH/main.py [--once]; requests come on standard input, answers leave on standard
output.

Both descriptors are moved away before anything else is imported, so that checked code can neither read requests nor
write into answers: its standard input is empty, its standard output is captured.
"""

from __future__ import annotations

import importlib.util
import os
import sys

PACKAGE = "_graphmend_worker"


def _private_channel() -> tuple[int, int]:
    """Takes descriptors 0 and 1 for the protocol and puts the null device and standard error in their place."""
    requests, answers = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return requests, answers


def _load_package() -> None:
    """Makes this folder importable as `PACKAGE`, and takes it off `sys.path` (Python put it first: a script's own
    folder).
    """
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != here]
    spec = importlib.util.spec_from_file_location(
        PACKAGE, os.path.join(here, "__init__.py"), submodule_search_locations=[here]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = module
    spec.loader.exec_module(module)


def main() -> None:
    requests, answers = _private_channel()
    _load_package()
    serve = importlib.import_module(PACKAGE + ".process.serve")
    serve.main(requests, answers, once="--once" in sys.argv[1:])


if __name__ == "__main__":
    main()

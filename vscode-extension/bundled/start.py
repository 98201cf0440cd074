"""Runs GraphMend with the packages that come with the extension: `python start.py [--environment] COMMAND ARG...`.

`--environment` takes the GraphMend that is installed in this interpreter's environment. Run by path, so that no
folder of a workspace is on `sys.path`; children of the server get the path from the server, and the interpreters that
run a user's code get nothing of it.
"""

import os
import runpy
import sys
from importlib.machinery import EXTENSION_SUFFIXES

HERE = os.path.dirname(os.path.abspath(__file__))


def bundled():
    """The folders to import from. libcst is native: a Python that it was not built for takes its environment's."""
    folders = [os.path.join(HERE, "libs")]
    native = os.path.join(folders[0], "native")
    if any(os.path.exists(os.path.join(native, "libcst", "native" + suffix)) for suffix in EXTENSION_SUFFIXES):
        folders.append(native)
    return folders


def main():
    if HERE in sys.path:
        sys.path.remove(HERE)
    if "--environment" in sys.argv[1:2]:
        del sys.argv[1]
    else:
        sys.path[:0] = bundled()
    runpy.run_module("graphmend", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

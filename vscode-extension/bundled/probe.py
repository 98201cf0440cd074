"""Says in one line of JSON what an interpreter is good for. Runs in any Python, however old."""

import json
import os
import sys

found = {"version": list(sys.version_info[:3]), "executable": sys.executable, "libcst": False, "graphmend": False}
if sys.version_info >= (3, 10):  # noqa: UP036 (an older one is told of, and not a syntax error)
    import importlib.util

    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import start

    found["libcst"] = len(start.bundled()) > 1 or importlib.util.find_spec("libcst") is not None
    found["graphmend"] = importlib.util.find_spec("graphmend") is not None
print(json.dumps(found))

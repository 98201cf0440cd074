"""How JupyterLab starts the language server: jupyter-lsp reads this by the entry point `jupyter_lsp_spec_v1`.

https://jupyterlab-lsp.readthedocs.io/en/latest/Language%20Servers.html
"""

from __future__ import annotations

import sys
from typing import Any

NAME = "graphmend"


def spec(_: object) -> dict[str, dict[str, Any]]:
    """The one server, in the environment that JupyterLab runs in."""
    return {
        NAME: {
            "version": 2,
            "display_name": "GraphMend",
            "argv": [sys.executable, "-m", "graphmend", "server", "--stdio"],
            "languages": ["python"],
            "mime_types": ["text/x-python", "text/x-ipython"],
            "urls": {"home": "https://github.com/graphmend/graphmend"},
        }
    }

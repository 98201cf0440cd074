"""Finding in, `Fix` or `Refusal` out. The only room that knows libcst.

What is named here is loaded when it is first asked for: a program that finds all its mended code in the cache needs the
importer, and neither the rewrites nor the analysis.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphmend.transforms.fix import Applicability, Fix, Refusal, TextEdit, Unmendable
    from graphmend.transforms.mend import Applied, Mended, mend_all

__all__ = ["Applicability", "Applied", "Fix", "Mended", "Refusal", "TextEdit", "Unmendable", "mend_all"]

_MENDING = ("Applied", "Mended", "mend_all")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{'mend' if name in _MENDING else 'fix'}"), name)
    globals()[name] = value
    return value

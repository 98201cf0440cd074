"""What an error says that a mapping or an object among the inputs has not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..reading.shapes import Call, Combination
from ..reading.usage import Use
from ..values import first


def completed(
    error: BaseException, combination: Combination, uses: dict[str, Use], names: dict[str, Any]
) -> Iterator[Combination]:
    """The combination with the key or the attribute that is missing in one of its values."""
    error = error.__cause__ or error
    key = error.args[0] if isinstance(error, KeyError) and error.args else None
    said = re.search(r"'(\w+)' object has no attribute '(\w+)'", str(error))
    for name, value in combination.items():
        use = uses.get(name.lstrip("*"), Use())
        if isinstance(value, dict) and isinstance(key, str) and key not in value:
            yield {**combination, name: {**value, key: first(key, None, use.keys.get(key, Use()), names)}}
        if said is not None and (made := _with(value, said[1], said[2], use, names)) is not None:
            yield {**combination, name: made}


def _with(value: Any, kind: str, attribute: str, use: Use, names: dict[str, Any]) -> Call | None:
    """An object with one attribute more, in place of a mapping, too."""
    if isinstance(value, dict) and kind == "dict" and not hasattr(dict, attribute):
        name, given = "SimpleNamespace", {n: v for n, v in value.items() if isinstance(n, str)}
    elif isinstance(value, Call) and kind in ("Namespace", "SimpleNamespace", value.name):
        name, given = value.name, value.arguments
    else:
        return None
    more = (
        {} if attribute in given else {attribute: first(attribute, None, use.attributes.get(attribute, Use()), names)}
    )
    return Call(name, {**given, **more})

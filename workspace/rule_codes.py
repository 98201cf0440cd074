"""Rule codes in settings: whether they name rules that exist, and which rules are only tried out yet."""

from __future__ import annotations

from collections.abc import Container
from functools import lru_cache

from graphmend.analysis.findings.suppressions import SEEN_BY_DYNAMO_ONLY, UnusedSuppression
from graphmend.analysis.rules import RULES
from graphmend.workspace.config import Configuration
from graphmend.workspace.options import did_you_mean


@lru_cache(maxsize=1)
def codes() -> tuple[str, ...]:
    """The codes of every rule, and of what TorchDynamo finds."""
    return tuple(sorted({UnusedSuppression.code, *(rule.code for rule in RULES), *SEEN_BY_DYNAMO_ONLY}))


def unknown(configuration: Configuration, overridden: Container[str] = ()) -> list[str]:
    """One line for every code in a configuration that is neither a rule nor the beginning of one.

    `overridden` are the options that do not come from the configuration's file.
    """
    used = {
        "select": configuration["select"],
        "extend-select": configuration["extend-select"],
        "ignore": configuration["ignore"],
        "severity": configuration["severity"],
        "per-file-ignores": [code for ignored in configuration["per-file-ignores"].values() for code in ignored],
    }
    return [
        f"{'command line' if name in overridden else configuration.file}: `{name}` names no rule: "
        f"`{code}`{did_you_mean(code, codes())}"
        for name, selectors in used.items()
        for code in selectors
        if not any(known.startswith(code) for known in codes())
    ]

"""The house as tables: which room may import which, which third-party package may appear where, and the floor of every
folder inside a room. `docs/architecture.md` prints the tables; `test_borders.py` holds the code to them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: room -> the rooms it may import
ARROWS: dict[str, set[str]] = {
    "analysis": set(),
    "workspace": {"analysis"},
    "transforms": {"analysis"},
    "importer": {"analysis", "workspace", "transforms"},
    "dynamo": {"analysis", "workspace"},
    "dynamo/worker": set(),
    "model": {"analysis", "workspace", "transforms", "dynamo"},
    "assistant": {"analysis", "workspace", "transforms", "dynamo", "model"},
    "server": {"analysis", "workspace", "transforms", "dynamo", "model"},
    "cli": {"analysis", "workspace", "transforms", "importer", "dynamo", "model", "assistant", "server"},
    "runtime": set(),
}

#: room -> the third-party packages it may import
PACKAGES: dict[str, set[str]] = {
    "analysis": set(),
    "workspace": {"pathspec", "platformdirs", "tomli"},
    "transforms": {"libcst"},
    "importer": set(),
    "dynamo": set(),
    "dynamo/worker": {"torch"},
    "model": set(),
    "assistant": {"mcp", "mcp_types", "pydantic"},
    "server": {"pygls", "lsprotocol", "cattrs"},
    "cli": {"rich", "pytest", "pyarrow", "ray"},  # all but rich: in one file each, which others import late
    "runtime": {"torch"},
}

#: folder -> its floors from the ground up; what stands on one floor (a file or a folder) knows only the floors below it
FLOORS: dict[str, tuple[str, ...]] = {
    "analysis": (
        "syntax settings torch_facts",
        "lattice",
        "finding program",
        "tensors",
        "resolution",
        "driver",
        "region",
        "interpreter",
        "rules facts",
        "interprocedural",
        "findings",
        "check incremental",
    ),
    "analysis/driver": ("frameworks", "words", "near", "reach execution", "guards", "history", "driven"),
    "analysis/driver/guards": ("facts", "atoms", "backends", "moment variation", "trace"),
    "analysis/driver/history": (
        "interface",
        "numbers joins",
        "sizes_written",
        "tensors",
        "forms",
        "flow layers loading",
        "torch_calls",
        "traced_calls",
        "machine",
        "run",
    ),
    "analysis/driver/history/numbers": ("arithmetic", "written draws"),
    "analysis/interpreter": ("events", "interface", "operations", "calls", "walk"),
    "transforms": (
        "fix questions torch_versions",
        "code",
        "legality",
        "if_conversion",
        "rewrites",
        "catalogue",
        "offers",
        "permitted",
        "state",
        "attempt",
        "rounds",
        "mend document style",
    ),
    "importer/code": ("line_numbers", "mended_code code_swap", "loaded"),
    "importer": (
        "outcome targets tested_torch",
        "code",
        "hook",
        "files_read",
        "text_mender",
        "next_imports",
        "upcoming",
        "ahead",
        "mending_process",
        "mender",
    ),
    "dynamo": (
        "codes comparison requests",
        "report verdict",
        "torch_logs",
        "worker_process report_cache merge watched_command mend_verdict",
        "service",
        "worker",
    ),
    "dynamo/worker": (
        "versions",
        "errors loading recording",
        "discover project",
        "inputs",
        "comparison",
        "runs",
        "job",
        "process",
        "main hook",
    ),
    "model": (
        "key meaning gates subject",
        "endpoint question splice trial",
        "prompt gatekeeper",
        "ask known_answers",
    ),
    "assistant": ("folders answers", "tools", "server"),
    "model/gates": ("allowed text", "original boundaries", "outside statements tensors", "form"),
    "server": (
        "lsp documents",
        "analyses",
        "verification",
        "session",
        "diagnostics",
        "mends",
        "features",
        "app",
        "main",
    ),
    "cli": (
        "control_characters",
        "failures option_values paths progress rule_catalogue",
        "adoption main places",
        "checking verifying",
        "asking output jupyter",
        "sweeping",
        "commands",
    ),
}

#: folders whose files may import each other, as long as no circle comes of it: one thing divided by subject
FLAT = frozenset({
    "workspace", "workspace/notebooks",
    "runtime", "runtime/frames", "runtime/captures", "runtime/specialised", "runtime/templates", "runtime/tracing",
    "analysis/syntax", "transforms/legality/bodies",
    "analysis/torch_facts", "analysis/torch_facts/generator", "analysis/lattice", "analysis/program",
    "analysis/tensors", "analysis/resolution", "analysis/driver/execution", "analysis/region",
    "analysis/interpreter/operations",
    "analysis/interpreter/calls", "analysis/interpreter/walk", "analysis/facts", "analysis/interprocedural",
    "analysis/findings", "analysis/incremental", "transforms/code", "transforms/legality",
    "transforms/legality/gradients", "transforms/legality/names", "transforms/legality/neutral",
    "transforms/legality/numbers", "transforms/legality/numbers/containers",
    "transforms/legality/numbers/calls", "transforms/if_conversion/places", "transforms/rewrites/torch_api/forms",
    "transforms/rewrites/control_flow/forms", "transforms/rewrites/output/forms",
    "transforms/rewrites/inlining/forms", "transforms/rewrites/scalars/forms",
    "transforms/rewrites/shapes/forms",
    "transforms/legality/operations", "transforms/legality/orders",
    "transforms/legality/objects", "transforms/legality/outside", "transforms/legality/raising",
    "transforms/legality/randomness",
    "transforms/legality/rows", "transforms/legality/writes",
    "transforms/if_conversion", "transforms/if_conversion/not_taken", "transforms/if_conversion/sides",
    "transforms/style",
    "dynamo/worker/recording", "dynamo/worker/project", "dynamo/worker/inputs", "dynamo/worker/inputs/reading",
    "dynamo/worker/inputs/variation", "dynamo/worker/inputs/feedback",
    "dynamo/worker/comparison", "dynamo/worker/runs",
    "dynamo/worker/process", "dynamo/worker/hook", "server/lsp", "server/documents", "server/analyses",
    "server/verification", "server/diagnostics", "server/mends", "server/features", "cli/adoption", "cli/asking",
    "cli/checking", "cli/verifying", "cli/jupyter", "cli/output", "cli/output/verify", "cli/output/sweep",
    "cli/sweeping", "cli/commands",
})  # fmt: skip

#: folders of which each file stands for itself, by family: none knows a file of another family
FAMILIES = frozenset({"analysis/rules", "transforms/rewrites"})

#: what every member of a family may use
COMMON = {
    "analysis/rules": {"rule", "dispatch", "documentation", "arguments"},
    "transforms/rewrites": {
        "answers", "asked_again", "chosen_values", "decided_tests", "inside_slice", "masked_losses", "named_parts",
        "raised_messages", "respelled", "under_mask", "varied_numbers", "write_order",
    },
}  # fmt: skip

MOST_MODULES = 12
MOST_LINES = 400
#: longer files, each with its reason
LONGER: dict[str, str] = {
    "analysis/lattice/values.py": "a lattice and its join need each other",
}


def room_of(path: Path) -> str:
    """The room that a file stands in."""
    parts = path.relative_to(ROOT).parts
    return "dynamo/worker" if parts[:2] == ("dynamo", "worker") else parts[0]


def modules() -> Iterator[Path]:
    """Every Python file of the rooms."""
    for room in ARROWS:
        if "/" not in room:
            yield from (path for path in sorted((ROOT / room).rglob("*.py")) if "__pycache__" not in path.parts)


def dotted(path: Path) -> str:
    """The name under which a file of the house is imported."""
    parts = ["graphmend", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports(path: Path) -> tuple[tuple[int, str], ...]:
    """(line, absolute dotted name) of everything that a file imports: at the top, in functions, for type checkers."""
    package = ["graphmend", *path.relative_to(ROOT).with_suffix("").parts[:-1]]
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found += ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            # `from graphmend import analysis` imports a room by its alias
            found += ((node.lineno, f"{module}.{alias.name}") for alias in node.names)
    return tuple(found)


@lru_cache(maxsize=1)
def file_graph() -> dict[str, set[str]]:
    """Which files of the house each file imports, by dotted name."""
    names = {dotted(path): path for path in modules()}
    graph: dict[str, set[str]] = {}
    for name, path in names.items():
        found = {imported if imported in names else imported.rpartition(".")[0] for _, imported in imports(path)}
        graph[name] = {imported for imported in found if imported in names and imported != name}
    return graph

"""Measures GraphMend with versions of torch: `make versions VERSIONS="2.10 2.12"`.

    python -m bench.versions VERSION [VERSION ...] [--only PART [PART ...]]

Writes the facts of each version, `bench/results/torch-versions.json` and `docs/torch-versions.md`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.versions import calls, environments, examples, page, suites
from graphmend.analysis.torch_facts.generator import generate

PARTS = ("facts", "calls", "examples", *suites.SUITES)
_STATE = "import torch, sys; print(torch.__version__, torch.__file__, torch.cuda.is_available())"


def measure(version: str, parts: list[str], row: dict[str, Any]) -> dict[str, Any]:
    """A version's row with the parts measured anew."""
    python = environments.python_with(version)
    stated, place, cuda = subprocess.run(
        [python, "-c", _STATE], capture_output=True, text=True, check=True
    ).stdout.split()
    row = {**row, "torch": stated, "date": datetime.date.today().isoformat()}
    if "facts" in parts:
        for path in generate.write(generate.Tree(Path(place).parents[1]), calls.FOLDER):
            print(f"{path.name} written")
    if "calls" in parts:
        data = calls.write(python) if version != page.minors()[0] else {"refused": {}, "measured": 0}
        row["calls"] = [len(data["refused"]), data["measured"]]
    if "examples" in parts:
        row["self-test"], checked, verified = examples.measure(python, version)
        row["check"], row["verify"] = checked._asdict(), verified._asdict()
    for suite in (name for name in suites.SUITES if name in parts):
        row.setdefault("suites", {})[suite] = suites.run(python, suite)._asdict()
    if cuda != "True":
        row["cuda"] = page.UNMEASURED
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("versions", nargs="+", metavar="VERSION", help="a minor version, such as 2.10")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="what to measure anew")
    arguments = parser.parse_args()
    missing = False
    for version in arguments.versions:
        results = page.load()
        try:
            results[version] = measure(version, arguments.only, results.get(version, {}))
        except environments.MissingError as error:
            print(error, file=sys.stderr)
            missing = True
            continue
        page.save(results)
        shown = {key: value for key, value in results[version].items() if key != "suites"}
        print(json.dumps(shown, indent=1))
    raise SystemExit(2 if missing else 0)


if __name__ == "__main__":
    main()

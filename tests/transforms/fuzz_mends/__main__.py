"""`python -m fuzz_mends`: random programs, mended and judged. Ends with 1 where a mend is wrong."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from fuzz_mends.campaign import Plan, Summary, carried_out, judged_one_by_one
from fuzz_mends.given import programs
from fuzz_mends.portions import in_portions, together
from fuzz_mends.program import generate
from fuzz_mends.report import summary, told, written


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz_mends", description=__doc__)
    parser.add_argument("--programs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--compile-every", type=int, default=10, metavar="N", help="0: never")
    parser.add_argument("--offers", type=int, default=1, help="single mends to try for each program")
    parser.add_argument("--small", type=int, default=3, help="wrong programs of a kind to make small")
    parser.add_argument("--at-most", type=int, default=60, help="wrong programs to make small")
    parser.add_argument("--write", type=Path, help="a JSON file for the wrong programs")
    parser.add_argument("--show", metavar="SEED:NUMBER", help="write one program and nothing else")
    parser.add_argument("--table", type=Path, metavar="PAGE", help="put the counts into a page of the documentation")
    parser.add_argument("--kept", type=Path, metavar="FOLDER", help="keep portions there, and go on from them")
    parser.add_argument("--portion", type=int, default=500, metavar="N", help="programs of one portion")
    parser.add_argument("--given", type=Path, metavar="FOLDER", help="judge the programs written there instead")
    options = parser.parse_args()
    if options.show:
        program = generate(options.show)
        print(f"{program.text}\n\n# inputs = {program.inputs}")
        return 0
    if options.given:
        wrong = [
            w
            for v in judged_one_by_one(programs(options.given), options.offers, options.compile_every)
            for w in v.wrong
        ]
        print("\n".join(told(w) for w in wrong))
        return 1 if wrong else 0
    plan = Plan(
        options.programs,
        options.seed,
        options.first,
        options.workers,
        options.compile_every,
        options.offers,
        options.small,
        options.at_most,
    )

    def keep(found: Summary) -> None:
        if options.write:
            wrong = [asdict(w) for w in (*found.small, *found.wrong)]
            options.write.write_text(json.dumps(wrong, indent=1), "utf-8")

    if options.kept:
        in_portions(plan, options.portion, options.kept, _progress)
        found = together(options.kept)
    else:
        found = carried_out(plan, _progress, keep)
    keep(found)
    for wrong in found.small or found.wrong[: options.at_most]:
        print(told(wrong))
    print(summary(found))
    if options.table:
        written(found, options.table)
    return 1 if found.wrong else 0


def _progress(found: Summary) -> None:
    for wrong in found.latest.wrong:
        print(f"{wrong.program.seed}: {' '.join(wrong.signature)}", file=sys.stderr)
    if sys.stderr.isatty() or found.programs % 100 == 0:
        end = "\r" if sys.stderr.isatty() else "\n"
        print(f"{found.programs} programs, {len(found.wrong)} wrong, {found.seconds:.0f} s", end=end, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())

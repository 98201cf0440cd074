"""What is written about a campaign."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from fuzz_mends.campaign import Summary
from fuzz_mends.verdict import Wrong

#: each rewrite has a page of its own there
_PAGES = Path(__file__).parents[3] / "docs" / "rewrites"


def rewrites() -> list[str]:
    """The names of all rewrites."""
    return sorted(page.stem for page in _PAGES.glob("*.md") if page.stem != "README")


def summary(found: Summary) -> str:
    """Counts, and each rewrite with the mends that were judged."""
    lines = [
        f"{found.programs} programs in {found.seconds:.0f} s: {found.statuses['judged']} mended and judged, "
        f"{found.statuses['unmended']} have no mend, {found.statuses['unfit']} fail for every input",
        ", ".join(f"{found.changed[mode]} texts with {mode} mends" for mode in ("safe", "unsafe", "offered"))
        + f", {found.compiled} judged compiled",
        "",
        f"{'rewrite':22}{'safe':>8}{'unsafe':>8}{'offered':>8}",
    ]
    for name in sorted({name for _, name in found.mends}):
        counts = [found.mends[mode, name] for mode in ("safe", "unsafe", "offered")]
        lines.append(f"{name:22}" + "".join(f"{count:8}" for count in counts))
    never = [name for name in rewrites() if not found.made(name)]
    lines += ["", f"not exercised: {', '.join(never) or 'none'}"]
    if found.differing:
        told = ", ".join(f"{count} {mode}" for mode, count in sorted(found.differing.items()))
        lines.append(f"differ, and may (unsafe mends): {told}")
        for name in sorted({name for name, _ in found.kinds}):
            seen = sorted((what, count) for (other, what), count in found.kinds.items() if other == name)
            lines.append(f"  {name}: {', '.join(f'{what} {count}' for what, count in seen)}")
    lines.append(f"wrong: {len(found.wrong)}")
    return "\n".join(lines)


_BEGIN, _END = "<!-- fuzzed: made by `make fuzz-mends` -->", "<!-- end of fuzzed -->"


def written(found: Summary, page: Path) -> None:
    """Puts a table of what was judged into a page, between its two marks."""
    text = page.read_text("utf-8")
    before, _, rest = text.partition(_BEGIN)
    _, _, behind = rest.partition(_END)
    judged = f"{found.statuses['judged']} had mends and were judged, {found.compiled} mended texts compiled as well"
    lines = [
        f"{found.programs} programs in {found.seconds:.0f} s on {os.cpu_count()} shared cores: "
        f"{judged}; **{len(found.wrong)} wrong**. Mends that were judged:",
        "",
        "| rewrite | safe | unsafe | by itself |",
        "|---|---:|---:|---:|",
    ]
    for name in sorted({name for _, name in found.mends}):
        counts = [found.mends[mode, name] for mode in ("safe", "unsafe", "offered")]
        lines.append(f"| `{name}` | {' | '.join(map(str, counts))} |")
    never = [name for name in rewrites() if not found.made(name)]
    lines += ["", f"Not exercised: {', '.join(f'`{name}`' for name in never) or 'none'}."]
    page.write_text(f"{before}{_BEGIN}\n\n" + "\n".join(lines) + f"\n\n{_END}{behind}", "utf-8")


def told(wrong: Wrong) -> str:
    """One wrong program, with what its mends changed."""
    differs = ", ".join(f"{what} (input {number})" for what, number in sorted(wrong.differences.items()))
    changes = difflib.unified_diff(wrong.program.text.splitlines(), wrong.mended.splitlines(), lineterm="", n=1)
    return "\n".join(
        [
            f"--- {wrong.mode}, seed {wrong.program.seed}: {', '.join(wrong.rewrites)}: {differs}",
            *(f"  {line}" for line in wrong.said),
            wrong.program.text.strip(),
            f"inputs = {wrong.program.inputs}",
            *(line for line in changes if not line.startswith(("---", "+++", "@@"))),
            "",
        ]
    )

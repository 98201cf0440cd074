"""Pages of HTML without scripts or network; light or dark as the reader's system is."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TextIO

_STYLE = """
:root { color-scheme: light dark; --text: #1c2024; --soft: #60646c; --back: #ffffff; --card: #f6f7f9; --line: #d9dce1;
  --graph: #2f6feb; --cut: #d1342f; --good: #1a7f4b; --eager: #8a8f98; }
@media (prefers-color-scheme: dark) { :root { --text: #e8eaed; --soft: #a0a4ab; --back: #15171a; --card: #1e2125;
  --line: #353a41; --graph: #5b8ff9; --cut: #ff6b63; --good: #4cc38a; --eager: #767c86; } }
* { box-sizing: border-box; }
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin: 0; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1rem 1.2rem; margin:
1rem 0; } code, pre { font: 13px/1.45 ui-monospace, monospace; } pre { margin: .3rem 0; overflow-x: auto; }
.soft { color: var(--soft); } .good { color: var(--good); } .bad { color: var(--cut); }
.strip { display: flex; align-items: stretch; gap: 0; margin: .4rem 0 .8rem; height: 2rem; }
.graph { background: var(--graph); color: #fff; border-radius: 4px; min-width: 1.6rem; padding: 0 .3rem; text-align:
center;
  line-height: 2rem; font-size: 12px; overflow: hidden; }
.cut { flex: 0 0 1.3rem; margin: -.2rem .2rem; color: var(--cut); text-align: center; line-height: 2.4rem;
  font-size: 12px; font-weight: bold; border-left: 3px solid; }
.none { border: 1px dashed var(--line); flex: 1; text-align: center; line-height: 2rem; color: var(--soft); }
.break { border-left: 3px solid var(--cut); padding: .1rem 0 .1rem .8rem; margin: .7rem 0; }
mark { background: none; color: inherit; text-decoration: underline wavy var(--cut); text-underline-offset: 3px; }
.bar { display: grid; grid-template-columns: 11rem 1fr 6rem; gap: .6rem; align-items: center; margin: .2rem 0; }
.bar span:nth-child(2) { height: .9rem; border-radius: 3px; background: var(--graph); min-width: 2px; }
.bar.eager span:nth-child(2) { background: var(--eager); }
ul { margin: .3rem 0; padding-left: 1.2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; vertical-align: top; } th { font-weight: 600; }
tr + tr td { border-top: 1px solid var(--line); } td.number, th.number { text-align: right; }
summary { cursor: pointer; } details { margin: .2rem 0; }
svg { display: block; width: 100%; height: auto; margin: .6rem 0; }
svg text { font: 13px system-ui, sans-serif; fill: var(--text); } svg text.soft { fill: var(--soft); }
svg text.on { fill: #fff; } svg .one { fill: var(--good); } svg .some { fill: var(--cut); }
svg .none, svg .plain { fill: var(--eager); } svg .mended { fill: var(--graph); }
"""


def page(title: str, heading: str, lines: Iterable[str], out: TextIO) -> None:
    """Writes a page. `lines` are HTML, the rest is text."""
    out.write(f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n')
    out.write('<meta name="viewport" content="width=device-width, initial-scale=1">\n')
    out.write(f"<style>{_STYLE}</style></head>\n<body><h1>{escape(heading)}</h1>\n")
    out.writelines(f"{line}\n" for line in lines)
    out.write("</body></html>\n")

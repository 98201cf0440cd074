// The page: a text field over a copy of its text that carries the underlines, and a worker that checks.

const $ = (name) => document.getElementById(`pg-${name}`);
const [text, marks, findings, diff, state] = ["text", "marks", "findings", "diff", "state"].map($);

const EXAMPLE = `import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        h = self.proj(x)
        if h.abs().max() > 10:
            h = h / h.abs().max()
        print("gate", h.mean().item())
        return h
`;

function element(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

// Columns of findings count code points.
function offset(lines, line, column) {
  const before = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  return before + [...(lines[line - 1] ?? "")].slice(0, column).join("").length;
}

function underline(found) {
  const lines = text.value.split("\n");
  const parts = [];
  let at = 0;
  for (const each of found) {
    const start = offset(lines, each.line, each.column);
    const end = Math.max(offset(lines, each.end_line, each.end_column), start + 1);
    if (start < at) continue; // within the one before
    parts.push(text.value.slice(at, start), element("span", each.region, text.value.slice(start, end)));
    at = end;
  }
  marks.replaceChildren(...parts, `${text.value.slice(at)}\n`);
  follow();
}

function show(finding) {
  const go = element("button", "", `${finding.line}:${finding.column + 1}`);
  go.onclick = () => {
    const start = offset(text.value.split("\n"), finding.line, finding.column);
    text.focus();
    text.setSelectionRange(start, start);
  };
  const rule = element("a", "", `${finding.code} ${finding.name}`);
  rule.href = `../rules/${finding.code}/`;
  const evidence = element("ol", "", ...finding.evidence.map((step) => element("li", "", step)));
  const mends = element("ul", "", ...finding.mends.map((mend) => element("li", "", mend)));
  return element(
    "div", `pg-finding ${finding.region}`, element("p", "", go, " ", rule, `: ${finding.message}`),
    evidence, ...(finding.mends.length ? [mends] : [element("p", "", finding.advice)]));
}

function showDiff(answer) {
  if (!answer.diff) return diff.replaceChildren(...(answer.note ? [element("p", "", answer.note)] : []));
  const classes = { "+": "added", "-": "removed" };
  const lines = answer.diff.split("\n").map((line) => element("span", classes[line[0]] ?? "", `${line}\n`));
  diff.replaceChildren(element("h2", "", "The safe mends"), element("pre", "", ...lines));
}

// The link holds the text itself, deflated.
async function through(bytes, stream) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

async function encoded(value) {
  const bytes = await through(new TextEncoder().encode(value), new CompressionStream("deflate-raw"));
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

async function decoded(value) {
  const bytes = Uint8Array.from(atob(value.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  return new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw")));
}

$("share").onclick = async () => {
  history.replaceState(null, "", `#${await encoded(text.value)}`);
  await navigator.clipboard?.writeText(location.href).catch(() => {});
  state.textContent = "the address of this page holds the text";
};

// One check at a time; of what was typed meanwhile, the last.
const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
let busy = true;
let checked = null;
let checks = 0;

function check() {
  if (busy || checked === text.value) return;
  busy = true;
  checked = text.value;
  worker.postMessage(checked);
}

worker.onmessage = ({ data }) => {
  busy = false;
  if (data.failed) {
    state.textContent = data.failed;
    busy = true;
  } else if (data.answer && checked === text.value) {
    const { answer } = data;
    underline(answer.findings);
    findings.replaceChildren(...answer.findings.map(show));
    showDiff(answer);
    const breaks = answer.findings.length;
    state.textContent = answer.problem || (breaks ? `${breaks} place${breaks > 1 ? "s" : ""}` : "No graph breaks found");
    state.dataset.checks = ++checks;
  }
  check();
};

function follow() {
  marks.scrollTop = text.scrollTop;
  marks.scrollLeft = text.scrollLeft;
}

text.onscroll = follow;
text.oninput = () => {
  underline([]);
  check();
};
text.onkeydown = (event) => {
  if (event.key === "Tab" && !event.shiftKey && !event.ctrlKey) {
    event.preventDefault();
    document.execCommand("insertText", false, "    ");
  }
};

text.value = location.hash.length > 1 ? await decoded(location.hash.slice(1)).catch(() => EXAMPLE) : EXAMPLE;
underline([]);

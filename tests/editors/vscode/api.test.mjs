// suite.cjs inside the real extension host, through VS Code's interface for extension tests, against the packaged extension.

import { NET } from "./net.mjs";
import { inWorkbench, log } from "./workbench.mjs";

const NOTEBOOK = JSON.stringify({
  nbformat: 4, nbformat_minor: 5, metadata: { language_info: { name: "python" } },
  cells: [["import torch"], ["@torch.compile\n", "def f(x: torch.Tensor):\n", "    print('here')\n", "    return x\n"]].map((source, n) => ({
    cell_type: "code", id: `cell${n}`, execution_count: null, metadata: { language: "python" }, outputs: [], source,
  })),
});
const files = {
  "pyproject.toml": "", "net.py": NET, "book.ipynb": NOTEBOOK,
  "extension/package.json": JSON.stringify({ name: "none", publisher: "test", version: "0.0.1", engines: { vscode: "*" } }),
};

await inWorkbench({ files, testApi: true }, async vs => {
  let finish;
  const finished = new Promise(resolve => (finish = resolve));
  await vs.page.exposeFunction("codeAutomationLog", (kind, words) => {
    if (String(words[0]).startsWith("suite:")) log(...words.map(each => String(each).slice(0, 300)));
  });
  await vs.page.exposeFunction("codeAutomationExit", finish);
  await vs.goto([
    ["extensionDevelopmentPath", vs.uri(vs.at("extension"))],
    ["extensionTestsPath", vs.uri(`${import.meta.dirname}/suite.cjs`)],
    ["skipWelcome", "true"],
  ]);
  const timer = setTimeout(() => finish("no end within 240 s"), 240_000);
  const status = await finished;
  clearTimeout(timer);
  if (status !== 0) throw new Error(`the suite ended with ${status}`);
});

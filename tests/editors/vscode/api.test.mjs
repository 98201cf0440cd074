// suite.cjs inside the real extension host, against the packaged extension.

import { NET } from "./models.mjs";
import { inExtensionHost } from "./workbench.mjs";

const NOTEBOOK = JSON.stringify({
  nbformat: 4, nbformat_minor: 5, metadata: { language_info: { name: "python" } },
  cells: [["import torch"], ["@torch.compile\n", "def f(x: torch.Tensor):\n", "    print('here')\n", "    return x\n"]].map((source, n) => ({
    cell_type: "code", id: `cell${n}`, execution_count: null, metadata: { language: "python" }, outputs: [], source,
  })),
});

await inExtensionHost({ files: { "pyproject.toml": "", "net.py": NET, "never-opened.py": NET, "book.ipynb": NOTEBOOK } }, "suite.cjs");

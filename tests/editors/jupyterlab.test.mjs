// A notebook and a module in JupyterLab with jupyterlab-lsp, which finds the server by its entry point.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import { createRequire } from "node:module";
import path from "node:path";

import { cache, log, until } from "./vscode/tools.mjs";

const { chromium } = createRequire(path.join(cache, "playwright/package.json"))("playwright-core");
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "graphmend-lab-"));

const code = source => ({ cell_type: "code", id: `c${source.length}`, metadata: {}, outputs: [], execution_count: null, source });
const cells = [
  "import torch\nfrom torch import nn",
  "%matplotlib inline\nclass Net(nn.Module):\n    def forward(self, x: torch.Tensor):\n        print(x.sum())\n        return x * 2",
  "net = torch.compile(Net())",
];
const kernelspec = { display_name: "Python 3 (ipykernel)", language: "python", name: "python3" };
fs.writeFileSync(path.join(folder, "nb.ipynb"), JSON.stringify(
  { cells: cells.map(code), metadata: { kernelspec }, nbformat: 4, nbformat_minor: 5 }));
fs.writeFileSync(path.join(folder, "mod.py"),
  "import torch\n\n\n@torch.compile\ndef f(x: torch.Tensor):\n    if x.sum() > 0:\n        return x\n    return -x\n");

const port = await new Promise(done => {
  const probe = net.createServer().listen(0, "127.0.0.1", () => {
    const { port } = probe.address();
    probe.close(() => done(port));
  });
});
const home = `http://127.0.0.1:${port}`;
const lab = spawn(path.join(cache, "jupyter/bin/jupyter"), [
  "lab", "--allow-root", "--no-browser", "--ip", "127.0.0.1", "--port", String(port), "--IdentityProvider.token=",
  "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
  "--LabApp.news_url=None",
], { cwd: folder, env: { ...process.env, HOME: folder, JUPYTER_CONFIG_DIR: path.join(folder, ".jupyter") }, stdio: "ignore" });

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
const page = await browser.newPage({ viewport: { width: 1300, height: 900 } });

/** The underlined texts in the document that is shown. */
async function underlined(file) {
  await page.goto(`${home}/lab/tree/${file}?reset`);
  const marks = page.locator(".jp-MainAreaWidget:visible .cm-lintRange:visible");
  await until(`a finding in ${file}`, async () => (await marks.count()) > 0, 90_000);
  return marks.allTextContents();
}

try {
  await until("JupyterLab", async () => (await fetch(`${home}/api`).catch(() => null))?.ok, 60_000);
  assert.deepEqual(await underlined("nb.ipynb"), ["print(x.sum())"]);
  log("a notebook");
  assert.deepEqual((await underlined("mod.py")).join(""), "x.sum() > 0");
  log("a module");
  console.log("jupyterlab: ok");
} catch (error) {
  await page.screenshot({ path: path.join(process.env.GRAPHMEND_KEPT ?? ".", "jupyterlab.png") });
  throw error;
} finally {
  await browser.close();
  lab.kill();
  fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}

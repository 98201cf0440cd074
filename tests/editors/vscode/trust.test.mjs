// A workspace that is not trusted: findings and mends work, and nothing of it runs, whatever it asks for; after "Trust" checks run.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { NET } from "./models.mjs";
import { log, python, sleep, until } from "./tools.mjs";
import { inWorkbench } from "./workbench.mjs";

const HOSTILE = `${NET}
import pathlib

pathlib.Path(__file__ + ".ran").touch()
`;
// what the workspace would have run: an interpreter of its own for the server and for checks, and checks on save
// (its own settings and, through them, the Python extension name one)
const FAKE = `#!/bin/sh\ntouch "$0.ran"\nexec ${python} "$@"\n`;
const WANTS = {
  "graphmend.interpreter": "${workspaceFolder}/fake-python", "graphmend.serverInterpreter": "./fake-python", "graphmend.importStrategy": "fromEnvironment",
  "graphmend.verify.mode": "onSave", "python.defaultInterpreterPath": "${workspaceFolder}/chosen-python", "graphmend.severity": { GM201: "error" },
};

const files = { "pyproject.toml": "", "net.py": HOSTILE, "fake-python": FAKE, "chosen-python": FAKE, ".vscode/settings.json": JSON.stringify(WANTS) };
for (const name of ["json.py", "graphmend.py"]) files[name] = `open(${JSON.stringify("/dev/null")})\nimport pathlib; pathlib.Path(__file__ + ".ran").touch()\n`;

const settings = { "security.workspace.trust.startupPrompt": "never", "security.workspace.trust.banner": "never" };
const extensions = [path.join(import.meta.dirname, "python-extension")];
await inWorkbench({ files, settings, extensions, trustAsks: true }, async vs => {
  const { page } = vs;
  const ran = () => ["net.py.ran", "fake-python.ran", "chosen-python.ran", "json.py.ran", "graphmend.py.ran"].filter(name => vs.exists(name));
  for (const name of ["fake-python", "chosen-python"]) fs.chmodSync(vs.at(name), 0o755);
  const net = await vs.open("net.py");
  await net.locator(".squiggly-error").first().waitFor(); // settings that choose nothing to run hold
  log("findings in restricted mode");

  await net.click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("# ");
  await page.keyboard.press("Control+S");
  await until("the file", () => vs.read("net.py") !== HOSTILE);
  await net.locator(".codelens-decoration a").first().click();
  await page.locator(".notification-list-item", { hasText: "trust" }).first().waitFor();
  await sleep(3000);
  assert.deepEqual(ran(), []);
  log("nothing ran");

  await vs.command("Workspaces: Manage Workspace Trust");
  await page.locator(".workspace-trust-editor").waitFor();
  await page.locator(".workspace-trust-editor .monaco-button", { hasText: /^Trust$/ }).first().click();
  await until("the workspace's own interpreter", () => vs.exists("fake-python.ran"));
  log("trusted");
  await page.locator(".monaco-modal-editor-block .codicon-close").last().click(); // it lies over everything
  await net.locator(".squiggly-error").first().waitFor();
  const lens = net.locator(".codelens-decoration a").filter({ hasText: "Verify" }).first();
  await until("the check", async () => {
    await lens.click({ timeout: 2000 }).catch(() => {}); // a click before the new server is there does nothing
    await sleep(5000);
    return ran().includes("net.py.ran");
  }, 120_000);
  assert.ok(!ran().includes("json.py.ran") && !ran().includes("graphmend.py.ran"), ran().join()); // never the server's own imports
  log("ran:", ran().join());
});

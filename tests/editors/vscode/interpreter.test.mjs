// No Python that the server could run in: one message says why and what to do; the setting that it names brings the server up.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { NET } from "./net.mjs";
import { inWorkbench, log, python, sleep } from "./workbench.mjs";

// An old interpreter is one that says so: the probe asks for its version and nothing else of it is used.
const OLD = `#!/bin/sh\necho '{"version": [3, 8, 10], "executable": "/opt/old/python3", "libcst": false, "graphmend": false}'\n`;

// One that looks fine and cannot run the server.
const BROKEN = `#!/bin/sh
case "$*" in *probe.py*) exec ${python} "$@";; esac
echo "ImportError: no module of that name" >&2
exit 1
`;

await inWorkbench({ files: { "pyproject.toml": "", "net.py": NET, "old-python": OLD, "broken-python": BROKEN }, machine: { "graphmend.serverInterpreter": "/no/such/python" } }, async vs => {
  const { page } = vs;
  const settings = path.join(vs.folder, "user/Machine/settings.json");
  const choose = interpreter => fs.writeFileSync(settings, JSON.stringify({ "graphmend.serverInterpreter": interpreter, "graphmend.interpreter": python }));
  for (const name of ["old-python", "broken-python"]) fs.chmodSync(vs.at(name), 0o755);

  const net = await vs.open("net.py");
  const messages = page.locator(".notifications-toasts .notification-list-item", { hasText: /GraphMend|graphmend/ });
  await messages.filter({ hasText: "/no/such/python: not found" }).waitFor();
  assert.equal(await messages.count(), 1, (await messages.allInnerTexts()).join("\n"));
  const message = await messages.first().innerText();
  assert.match(message, /needs Python 3\.10 or newer/);
  log("told:", message.replace(/\s+/g, " "));

  choose(vs.at("old-python"));
  await messages.filter({ hasText: "is Python 3.8.10" }).waitFor();

  choose(vs.at("broken-python"));
  await messages.filter({ hasText: "does not run: ImportError: no module of that name" }).waitFor();
  await sleep(2000);
  const told = await messages.filter({ hasNotText: "needs Python" }).allInnerTexts();
  assert.equal(told.length, 1, told.join("\n"));
  log("a server that does not start is told of once");

  choose("");
  await net.locator(".squiggly-warning").first().waitFor();
  log("the server runs");
});

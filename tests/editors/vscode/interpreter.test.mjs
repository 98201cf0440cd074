// A server that cannot start, or dies again and again: one message says why and what to do, and doing it brings the server up.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { NET } from "./models.mjs";
import { log, python, sleep, until } from "./tools.mjs";
import { inWorkbench } from "./workbench.mjs";

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
  const choose = interpreter => vs.set({}, { "graphmend.serverInterpreter": interpreter });
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

  const servers = () =>
    execFileSync("ps", ["-eo", "pid=,args="], { encoding: "utf8" }).split("\n").filter(line => /start\.py server/.test(line) && line.includes(vs.folder)).map(line => parseInt(line, 10));
  for (let deaths = 1, last; deaths <= 5; deaths++) {
    const [server] = await until(`server ${deaths}`, () => [servers()].find(found => found.length === 1 && found[0] !== last));
    await sleep(2000); // it has been asked for settings: it started
    process.kill((last = server), "SIGKILL");
  }
  const died = messages.filter({ hasText: "it stopped 5 times within three minutes" });
  await died.waitFor();
  await sleep(2000);
  assert.equal(await died.count(), 1);
  assert.deepEqual(servers(), []);
  log("told:", (await died.innerText()).replace(/\s+/g, " "));
  await died.locator(".monaco-button", { hasText: "Restart" }).click();
  await until("a server", () => servers().length === 1);
  await net.locator(".squiggly-warning").first().waitFor();
  log("the message's own button brought it back");
});

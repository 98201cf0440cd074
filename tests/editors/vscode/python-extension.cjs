// Inside the extension host, beside a stand-in for the Python extension: whose interpreter runs what.

const assert = require("node:assert/strict");
const fs = require("node:fs");
const vscode = require("vscode");
const { anotherServer, codes, commandLines, file, run, set, theServer, until, withFile } = require("./inside.cjs");

const path = name => file(name).fsPath;
const choose = async name => (await vscode.extensions.getExtension("ms-python.python").activate()).choose(path(name));
const ranWith = name => (fs.existsSync(`${path(name)}.ran`) ? fs.readFileSync(`${path(name)}.ran`, "utf8") : "");
const forget = () => ["first-python", "second-python", "third-python"].forEach(name => fs.rmSync(`${path(name)}.ran`, { force: true }));
const serves = name => /start\.py server/.test(ranWith(name));
const checks = name => /worker/.test(ranWith(name));

async function check() {
  const outcome = await vscode.commands.executeCommand("graphmend.verifyFile");
  assert.equal(outcome.status, "checked", JSON.stringify(outcome));
}

const tests = {
  "the chosen interpreter runs the server and the checks, and another choice runs them anew"() {
    return withFile("net.py", async uri => {
      await until("a finding, with nothing chosen", () => codes(uri).length);
      await choose("first-python");
      await until("a server in the first", () => serves("first-python") && theServer());
      await until("a finding", () => codes(uri).length);
      await check();
      assert.ok(checks("first-python"), ranWith("first-python"));

      await choose("second-python");
      await until("a server in the second", () => serves("second-python") && theServer());
      forget();
      await until("a finding", () => codes(uri).length);
      await check();
      assert.ok(checks("second-python"), ranWith("second-python"));
      assert.equal(ranWith("first-python"), "");
    });
  },

  "settings come first: one for the server, one for the checks"() {
    return withFile("net.py", async uri => {
      await choose("first-python");
      await until("a server in the first", () => serves("first-python"));
      await set("serverInterpreter", "${workspaceFolder}/second-python");
      await until("a server in the second", () => serves("second-python"));
      await set("interpreter", "${workspaceFolder}/third-python");
      await until("a finding", () => codes(uri).length);
      forget();
      await check();
      assert.ok(checks("third-python"), ranWith("third-python"));
      assert.equal(ranWith("first-python") + ranWith("second-python"), "");
      await set("interpreter", undefined);
      await set("serverInterpreter", undefined);
      await until("the chosen one again", () => serves("first-python"));
    });
  },

  "a server that follows no choice keeps running when the choice changes, and checks follow"() {
    return withFile("net.py", async uri => {
      const { id: last } = await until("a server", theServer);
      await set("serverInterpreter", process.env.GRAPHMEND_PYTHON);
      const { id } = await until("a server of that setting", () => anotherServer(last));
      await until("a finding", () => codes(uri).length);
      forget();
      await choose("second-python");
      await until("the check in the second", async () => (await check(), checks("second-python")));
      assert.deepEqual([...commandLines().keys()], [id]);
      await set("serverInterpreter", undefined);
      await until("a server in the second", () => serves("second-python"));
    });
  },

  "one that is too old for the server, has no Python or cannot be read is passed over"() {
    return withFile("net.py", async uri => {
      for (const name of ["old-python", "without-python", "unreadable"]) {
        await choose(name);
        await until("a server in the one on the path", () => /^\d+ python3 /.test(theServer()?.line));
        await vscode.commands.executeCommand("graphmend.restart");
        await until("a finding", () => codes(uri).length);
      }
    });
  },
};

exports.run = async () => {
  for (const name of fs.readdirSync(path("")).filter(name => name.endsWith("-python"))) fs.chmodSync(path(name), 0o755);
  await run(tests);
};

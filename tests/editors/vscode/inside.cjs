// What the suites inside the extension host share: waiting, the workspace's files, what the extension shows, the servers it runs.

const { execFileSync } = require("node:child_process");
const vscode = require("vscode");

const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));

async function until(what, ask, ms = 30_000) {
  for (const end = Date.now() + ms; ; await sleep(50)) {
    const found = await ask();
    if (found) return found;
    if (Date.now() > end) throw new Error(`not within ${ms / 1000} s: ${what}`);
  }
}

const extension = () => vscode.extensions.getExtension("graphmend.graphmend");
const file = name => vscode.Uri.joinPath(vscode.workspace.workspaceFolders[0].uri, name);
const open = async name => (await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(file(name)))).document;
const set = (name, value) => vscode.workspace.getConfiguration("graphmend").update(name, value, vscode.ConfigurationTarget.Workspace);
const findings = uri => vscode.languages.getDiagnostics(uri).filter(found => found.source === "graphmend");
const codes = uri => findings(uri).map(found => String(found.code?.value ?? found.code));
const quickFixes = (uri, range, resolve = 0) => vscode.commands.executeCommand("vscode.executeCodeActionProvider", uri, range, "quickfix", resolve);
const lenses = async uri => (await vscode.commands.executeCommand("vscode.executeCodeLensProvider", uri)).map(lens => lens.command?.title);

/** The command lines of the servers that run, by process id. */
const commandLines = () =>
  new Map(
    execFileSync("ps", ["-eo", "pid=,args="], { encoding: "utf8" }).split("\n")
      .filter(line => /bundled.start\.py .*server/.test(line) && line.includes(extension().extensionPath))
      .map(line => [parseInt(line, 10), line.trim()]),
  );
/** The one server that runs, by one look: a second look may find another, or none. */
const theServer = () => {
  const [[id, line] = [], ...others] = commandLines();
  return id && !others.length ? { id, line } : undefined;
};
const anotherServer = last => {
  const found = theServer();
  return found?.id !== last ? found : undefined;
};

/** Opens a file, and puts it back as it was. */
async function withFile(name, test) {
  const text = await vscode.workspace.fs.readFile(file(name));
  try {
    await test((await open(name)).uri);
  } finally {
    await vscode.commands.executeCommand("workbench.action.files.revert").then(undefined, () => undefined);
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
    await vscode.workspace.fs.writeFile(file(name), text);
  }
}

/** Runs the tests one after the other; each says how it went. */
async function run(tests) {
  const failed = [];
  for (const [name, test] of Object.entries(tests)) {
    const began = Date.now();
    try {
      await test();
      console.log(`suite: ok   ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
    } catch (error) {
      failed.push(name);
      console.log(`suite: FAIL ${name}: ${error.stack}`);
    }
  }
  if (failed.length) throw new Error(`${failed.length} failed`);
}

module.exports = { anotherServer, codes, commandLines, extension, file, findings, lenses, open, quickFixes, run, set, sleep, theServer, until, withFile };

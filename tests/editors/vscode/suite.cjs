// What the extension does for VS Code, asked from inside: settings, code actions, change annotations, notebooks, the server's life.

const assert = require("node:assert/strict");
const vscode = require("vscode");
const { anotherServer, codes, commandLines, file, findings, lenses, quickFixes, run, set, sleep, theServer, until, withFile } = require("./inside.cjs");

const python = process.env.GRAPHMEND_PYTHON;

const tests = {
  "settings take effect, and go back to the default"() {
    return withFile("net.py", async uri => {
      await until("a finding", () => codes(uri).includes("GM201"));
      await set("ignore", ["GM2"]);
      await until("no finding", () => !codes(uri).length);
      await set("ignore", undefined);
      await until("the finding again", () => codes(uri).includes("GM201"));
      await set("severity", { GM201: "hint" });
      await until("a hint", () => findings(uri).some(found => found.severity === vscode.DiagnosticSeverity.Hint));
      await set("severity", undefined);
      await set("enable", false);
      await until("nothing", () => !codes(uri).length);
      await set("enable", undefined);
      await until("the finding again", () => codes(uri).includes("GM201"));
    });
  },

  "the project's own file holds where nothing is set in the editor"() {
    return withFile("net.py", async uri => {
      await until("a finding", () => codes(uri).includes("GM201"));
      await vscode.workspace.fs.writeFile(file("pyproject.toml"), Buffer.from('[tool.graphmend]\nignore = ["GM201"]\n'));
      await until("no finding", () => !codes(uri).length);
      await vscode.workspace.fs.writeFile(file("pyproject.toml"), Buffer.from(""));
      await until("the finding again", () => codes(uri).includes("GM201"));
    });
  },

  "a wrong setting does not stop the server"() {
    return withFile("net.py", async uri => {
      await set("ignore", 7);
      await sleep(1000);
      await until("a finding", () => codes(uri).includes("GM201"));
      await set("ignore", undefined);
    });
  },

  "a safe mend is preferred, and made when it is asked for"() {
    return withFile("net.py", async uri => {
      const found = await until("a finding", () => findings(uri)[0]);
      const mends = await until("mends", async () => (await quickFixes(uri, found.range, 5)).filter(a => a.title.startsWith("Mend graph break")));
      assert.equal(mends[0].isPreferred, true);
      assert.equal(mends[0].command, undefined);
      const document = await vscode.workspace.openTextDocument(uri);
      await vscode.workspace.applyEdit(mends[0].edit);
      assert.match(document.getText(), /^ +emit\(print, "forward"\)/m);
      await until("no finding", () => !codes(uri).length);
    });
  },

  "all of a file is mended by command, and by `source.fixAll`"() {
    return withFile("net.py", async uri => {
      await until("a finding", () => codes(uri).length);
      const document = await vscode.workspace.openTextDocument(uri);
      await vscode.commands.executeCommand("graphmend.mendAll");
      await until("the mend", () => /emit\(print, "forward"\)/.test(document.getText()));
      await vscode.commands.executeCommand("workbench.action.files.revert");
      await until("a finding", () => codes(uri).length);
      await vscode.commands.executeCommand("editor.action.sourceAction", { kind: "source.fixAll.graphmend", apply: "first" });
      await until("the mend", () => /emit\(print, "forward"\)/.test(document.getText()));
    });
  },

  "a check of the function at the cursor is told, with its device"() {
    return withFile("net.py", async uri => {
      await until("a lens", async () => (await lenses(uri)).includes("1 graph break - Verify"));
      await set("verify.device", "cpu");
      vscode.window.activeTextEditor.selection = new vscode.Selection(11, 8, 11, 8);
      const outcome = await vscode.commands.executeCommand("graphmend.verifyFunction");
      assert.equal(outcome.status, "checked", JSON.stringify(outcome));
      assert.equal(outcome.device, "cpu");
      assert.deepEqual(outcome.targets.map(target => target.name), ["Net"]);
      await until("the lens", async () => (await lenses(uri)).some(title => /verified on cpu/.test(title)));
      // what was checked is not this text any more
      await vscode.window.activeTextEditor.edit(edit => edit.insert(new vscode.Position(12, 0), "\n"));
      await until("the lens without the check", async () => !(await lenses(uri)).some(title => /verified on/.test(title)));
      await set("verify.device", undefined);
    });
  },

  "a rule is explained"() {
    return withFile("net.py", async uri => {
      await until("a finding", () => codes(uri).length);
      await vscode.commands.executeCommand("graphmend.explainRule", "GM201");
      await until("the preview", () => vscode.window.tabGroups.all.some(group => group.tabs.some(tab => /GM201/.test(tab.label))));
      const shown = await vscode.workspace.openTextDocument(vscode.Uri.from({ scheme: "graphmend-rule", path: "/GM201.md" }));
      assert.match(shown.getText(), /Why it breaks/i);
    });
  },

  async "the problem matcher makes problems of a task's output"() {
    const uri = file("never-opened.py");
    const shell = new vscode.ShellExecution(python, ["-m", "graphmend", "check", "--no-cache", "--output-format", "concise", "never-opened.py"]);
    const task = new vscode.Task({ type: "shell" }, vscode.TaskScope.Workspace, "graphmend", "test", shell, "$graphmend");
    assert.deepEqual(codes(uri), []);
    await vscode.tasks.executeTask(task);
    const [problem] = await until("a problem", () => findings(uri).length && findings(uri));
    assert.deepEqual([...codes(uri), problem.severity, problem.range.start.line], ["GM201", vscode.DiagnosticSeverity.Warning, 11]);
    assert.match(problem.message, /^print\(\)/);
  },

  "the GraphMend of the environment serves where that is chosen"() {
    return withFile("net.py", async uri => {
      await until("a finding", () => codes(uri).length);
      assert.doesNotMatch([...commandLines().values()].join(), /--environment/);
      await set("serverInterpreter", python);
      await set("importStrategy", "fromEnvironment");
      const chosen = () => theServer()?.line ?? "";
      await until("the other server", () => / --environment server/.test(chosen().split(`${python} `)[1] ?? ""));
      await set("ignore", ["GM2"]); // it answers
      await until("no finding", () => !codes(uri).length);
      for (const name of ["ignore", "importStrategy", "serverInterpreter"]) await set(name, undefined);
      await until("the bundled one again", () => /^(?!.*--environment)./.test(chosen()) && codes(uri).length);
    });
  },

  async "findings of a notebook stand in its cells, with a lens that checks"() {
    const notebook = await vscode.workspace.openNotebookDocument(file("book.ipynb"));
    await vscode.window.showNotebookDocument(notebook);
    const cell = notebook.cellAt(1).document;
    await until("a finding", () => codes(cell.uri).includes("GM201"));
    assert.equal(findings(cell.uri)[0].range.start.line, 2);
    await until("the cell's lens", async () => (await lenses(cell.uri)).includes("1 graph break - Verify"));
    const all = await vscode.commands.executeCommand("vscode.executeCodeLensProvider", cell.uri);
    const lens = all.find(each => /Verify/.test(each.command.title));
    assert.equal(lens.range.start.line, 1);
    const outcome = await vscode.commands.executeCommand(lens.command.command, ...lens.command.arguments);
    assert.equal(outcome.status, "checked", JSON.stringify(outcome));
    assert.deepEqual(outcome.targets.map(target => target.name), ["f"]);
    await until("the cell's lens after the check", async () => (await lenses(cell.uri)).some(title => /verified on/.test(title)));
    await until("the confirmed finding", () => findings(cell.uri).some(found => /confirmed by TorchDynamo/.test(found.message)));
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
  },

  "a server that is killed comes back"() {
    return withFile("net.py", async uri => {
      await until("a finding", () => codes(uri).length);
      const { id } = await until("a server", theServer);
      process.kill(id, "SIGKILL");
      await until("another server", () => anotherServer(id));
      await set("ignore", ["GM2"]); // it answers
      await until("no finding", () => !codes(uri).length);
      await set("ignore", undefined);
      await until("the finding again", () => codes(uri).length);
    });
  },

  "`Restart Server` starts another one"() {
    return withFile("net.py", async uri => {
      const { id } = await until("a server", theServer);
      await vscode.commands.executeCommand("graphmend.restart");
      await until("another server", () => anotherServer(id));
      await until("a finding", () => codes(uri).length);
    });
  },

  "a server that dies again and again is left alone until somebody restarts it"() {
    return withFile("net.py", async uri => {
      await until("a finding", () => codes(uri).length);
      for (let deaths = 1, last; deaths <= 5; deaths++) {
        const { id } = await until(`server ${deaths}`, () => anotherServer(last));
        await sleep(1500); // it has been asked for settings: it started
        process.kill((last = id), "SIGKILL");
      }
      await sleep(3000);
      assert.deepEqual([...commandLines().values()], []);
      await vscode.commands.executeCommand("graphmend.restart");
      await until("a finding", () => theServer() && codes(uri).length);
    });
  },

  "without a usable interpreter there is no server and no exception, and a better setting starts one"() {
    return withFile("net.py", async uri => {
      await until("a finding", () => codes(uri).length);
      await set("serverInterpreter", file("no-such-python").fsPath);
      await until("no server", () => !commandLines().size);
      await set("serverInterpreter", undefined);
      await until("a server", theServer);
      await until("a finding", () => codes(uri).length);
    });
  },
};

exports.run = () => run(tests);

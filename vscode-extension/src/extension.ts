// GraphMend in VS Code: puts the server, the commands and the status together.

import * as vscode from "vscode";
import { onDidChangeInterpreter } from "./python";
import { showReport } from "./report";
import { registerRules } from "./rules";
import { MODEL_KEY, Server } from "./server";
import { Status } from "./status";

let server: Server | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const channel = (name: string) => vscode.window.createOutputChannel(name, { log: true });
  const log = channel("GraphMend"), output = channel("GraphMend Server"), trace = channel("GraphMend Trace");
  const running = (server = new Server(context, log, output, trace));
  const reconsider = () => void running.reconsider();
  context.subscriptions.push(
    log, output, trace,
    new Status(running),
    registerRules(),
    registerCommands(context, running, output),
    vscode.workspace.onDidGrantWorkspaceTrust(reconsider),
    vscode.workspace.onDidChangeConfiguration(event => {
      const ours = ["graphmend.importStrategy", "graphmend.serverInterpreter"];
      if (ours.some(name => event.affectsConfiguration(name))) reconsider();
    }),
  );
  await running.restart();
  context.subscriptions.push(await onDidChangeInterpreter(reconsider));
}

export async function deactivate(): Promise<void> {
  await server?.dispose();
}

function registerCommands(context: vscode.ExtensionContext, server: Server, output: vscode.OutputChannel): vscode.Disposable {
  const inEditor = (work: (editor: vscode.TextEditor) => unknown) => () => {
    const editor = vscode.window.activeTextEditor;
    return editor?.document.languageId === "python" ? work(editor) : undefined;
  };
  // commands of the server, which the client makes known under the same names
  const ask = (command: string, ...args: unknown[]) => vscode.commands.executeCommand(`graphmend.${command}`, ...args);
  const uri = (editor: vscode.TextEditor) => editor.document.uri.toString();
  const commands: Record<string, (...args: never[]) => unknown> = {
    mendAll: inEditor(editor => ask("mendFile", uri(editor))),
    verifyFile: inEditor(editor => ask("verify", uri(editor))),
    verifyFunction: inEditor(editor => ask("verify", uri(editor), editor.selection.active)),
    showReport: inEditor(async editor =>
      vscode.workspace.isTrusted
        ? showReport(context, await server.command(), editor.document)
        : vscode.window.showWarningMessage("A report runs the code of the file. Trust the workspace first."),
    ),
    setModelKey: async () => {
      const key = await vscode.window.showInputBox({
        title: "Key of the language model's server", password: true, ignoreFocusOut: true, prompt: "Empty forgets it",
      });
      if (key === undefined) return;
      await (key === "" ? context.secrets.delete(MODEL_KEY) : context.secrets.store(MODEL_KEY, key));
      await server.tellModelKey();
    },
    restart: () => server.restart(),
    showLogs: () => output.show(),
  };
  const registered = Object.entries(commands).map(([name, work]) => vscode.commands.registerCommand(`graphmend.${name}`, work));
  return vscode.Disposable.from(...registered);
}

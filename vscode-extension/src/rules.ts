// "Explain Rule": the rule's documentation as a Markdown preview.

import * as vscode from "vscode";
import { findings } from "./status";

const SCHEME = "graphmend-rule";

export function registerRules(): vscode.Disposable {
  const provider: vscode.TextDocumentContentProvider = {
    provideTextDocumentContent: async uri => {
      const code = uri.path.replace(/^\/|\.md$/g, "");
      const text = await vscode.commands.executeCommand<string | undefined>("graphmend.explain", code);
      return `# ${code}\n\n${text ?? "There is no such rule, or the server does not run."}\n`;
    },
  };
  return vscode.Disposable.from(
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, provider),
    vscode.commands.registerCommand("graphmend.explainRule", explainRule),
  );
}

/** The rule of the finding at the cursor; else one of the file's, or the one that is typed. */
async function explainRule(given?: string): Promise<void> {
  const code = given ?? codesAtCursor()[0] ?? (await ask());
  if (!code) return;
  const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${code.toUpperCase()}.md` });
  await vscode.commands.executeCommand("markdown.showPreview", uri);
}

function codesAtCursor(): string[] {
  const editor = vscode.window.activeTextEditor;
  if (!editor) return [];
  return findings(editor.document.uri).filter(found => found.range.contains(editor.selection.active)).map(codeOf);
}

function codeOf(diagnostic: vscode.Diagnostic): string {
  const code = diagnostic.code;
  return String(typeof code === "object" ? code.value : code);
}

function ask(): Thenable<string | undefined> {
  const validateInput = (text: string) => (/^GM\d{3}$/i.test(text) ? undefined : "A code such as GM101");
  return vscode.window.showInputBox({ title: "Explain Rule", prompt: "The code of a rule", value: "GM101", validateInput });
}

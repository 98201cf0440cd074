// Stands in for the Python extension, which cannot be had without a gallery: the part of its interface that GraphMend uses, as
// @vscode/python-extension describes it, and `choose`, which stands for a person who selects an interpreter.

const vscode = require("vscode");

exports.activate = () => {
  const changed = new vscode.EventEmitter();
  const folder = vscode.workspace.workspaceFolders?.[0].uri.fsPath ?? "";
  let chosen = vscode.workspace.getConfiguration("python").get("defaultInterpreterPath").replace("${workspaceFolder}", folder);
  const asPath = path => ({ id: path, path });
  return {
    choose(path) {
      chosen = path;
      changed.fire({ ...asPath(path), resource: undefined });
    },
    ready: Promise.resolve(),
    environments: {
      getActiveEnvironmentPath: () => asPath(chosen),
      async resolveEnvironment({ path }) {
        if (!path) return undefined;
        if (path.endsWith("/unreadable")) throw new Error("this environment cannot be read");
        return { ...asPath(path), executable: { uri: path.endsWith("/without-python") ? undefined : vscode.Uri.file(path) } };
      },
      onDidChangeActiveEnvironmentPath: changed.event,
    },
  };
};

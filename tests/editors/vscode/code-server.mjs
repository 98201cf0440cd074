// A throw-away code-server with the packaged extension, and others beside it. Needs no network.

import { execFileSync, spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import path from "node:path";
import { cache, log, root, until } from "./tools.mjs";

const NODE24 = path.join(cache, "node24/node_modules/node/bin/node");
const CODE_SERVER = path.join(cache, "code-server/node_modules/code-server");
const VSCE = path.join(root, "vscode-extension/node_modules/.bin/vsce");

/** Installs the extensions and starts the server in `folder`; `kill` ends it and all that it started. */
export async function startCodeServer({ folder, extensions, trustAsks, testApi }) {
  const user = path.join(folder, "user"), home = path.join(folder, "home");
  fs.mkdirSync(home);
  const env = {
    ...process.env, HOME: home, XDG_CONFIG_HOME: `${home}/c`, XDG_DATA_HOME: `${home}/d`, XDG_CACHE_HOME: `${home}/k`, EXTENSIONS_GALLERY: "{}",
  };
  const entry = [path.join(CODE_SERVER, "out/node/entry.js"), "--config", path.join(folder, "config.yaml")];
  const places = ["--user-data-dir", user, "--extensions-dir", path.join(folder, "extensions")];
  for (const vsix of [packaged(), ...extensions.map(source => pack(source, folder))]) {
    const installed = spawnSync(NODE24, [...entry, ...places, "--install-extension", vsix], { env, encoding: "utf8" });
    if (!/successfully installed/.test(installed.stdout)) throw new Error(`not installed: ${installed.stdout}${installed.stderr}`);
    log("installed", path.basename(vsix));
  }

  const port = await freePort();
  // the test interface is in VS Code's own server, inside code-server, and only with the driver of its smoke tests
  const args = testApi
    ? [path.join(CODE_SERVER, "lib/vscode/out/server-main.js"), "--host", "127.0.0.1", "--port", `${port}`, "--without-connection-token",
       "--accept-server-license-terms", "--telemetry-level", "off", "--server-data-dir", `${folder}/server`, ...places, "--enable-smoke-test-driver"]
    : [...entry, ...places, "--auth", "none", "--bind-addr", `127.0.0.1:${port}`, "--disable-telemetry", "--disable-update-check",
       ...(trustAsks ? [] : ["--disable-workspace-trust"]), "--disable-getting-started-override", "--disable-proxy"];
  const output = fs.openSync(path.join(folder, "code-server.log"), "w");
  const server = spawn(NODE24, args, { env, stdio: ["ignore", output, output], detached: true });
  const kill = () => {
    try {
      process.kill(-server.pid, "SIGKILL"); // the group: extension hosts, watchers, language servers
    } catch {} // it is gone
  };
  process.on("exit", kill);
  await until("code-server", () => answers(`http://127.0.0.1:${port}/${testApi ? "version" : "healthz"}`));
  return { port, kill };
}

/** The .vsix that `npm run package` made. */
function packaged() {
  const found = fs.readdirSync(path.join(root, "vscode-extension")).filter(name => name.endsWith(".vsix"));
  if (found.length !== 1) throw new Error(`one .vsix is wanted, found ${found.length}: npm run package`);
  return path.join(root, "vscode-extension", found[0]);
}

function pack(source, folder) {
  const vsix = path.join(folder, `${path.basename(source)}.vsix`);
  execFileSync(VSCE, ["package", "--no-dependencies", "--allow-missing-repository", "--skip-license", "--out", vsix], { cwd: source, stdio: "pipe" });
  return vsix;
}

const freePort = () =>
  new Promise(resolve => {
    const socket = net.createServer().listen(0, "127.0.0.1", () => {
      const { port } = socket.address();
      socket.close(() => resolve(port));
    });
  });

const answers = url =>
  new Promise(resolve => {
    http.get(url, answer => resolve((answer.resume(), answer.statusCode === 200))).on("error", () => resolve(false));
  });

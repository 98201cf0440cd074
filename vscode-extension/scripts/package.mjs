// Makes one .vsix: `npm run package [-- TARGET]`. TARGET is a platform as VS Code names it (by default this one), or `universal`,
// which holds no native part. https://code.visualstudio.com/api/working-with-extensions/publishing-extension#platformspecific-extensions
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

const here = path.resolve(import.meta.dirname, "..");
const root = path.resolve(here, "..");
process.chdir(here);
const { version } = JSON.parse(fs.readFileSync("package.json", "utf8"));
const target = process.argv[2] ?? `${process.platform}-${process.arch}`;
const run = (command, ...args) => execFileSync(command, args, { stdio: "inherit", shell: process.platform === "win32" });

run("npm", "run", "--silent", "build");
run("node", "scripts/build.mjs", "--minify");
run(process.env.PYTHON ?? (process.platform === "win32" ? "python" : "python3"), "scripts/bundle.py", target, version);

for (const name of ["LICENSE", "CHANGELOG.md"]) fs.copyFileSync(path.join(root, name), name);
for (const name of ["squiggle", "quick-fix", "lens", "report"]) {
  const picture = path.join(root, "docs", "images", `${name}.png`);
  if (fs.existsSync(picture)) fs.copyFileSync(picture, path.join("media", `${name}.png`));
}
for (const old of fs.readdirSync(".").filter(name => name.endsWith(".vsix"))) fs.rmSync(old);
const platform = target === "universal" ? [] : ["--target", target];
run("npx", "vsce", "package", "--no-dependencies", ...platform, "--out", `graphmend-${target}-${version}.vsix`);

// Small things that the tests share: where things are, a log with times, waiting.

import os from "node:os";
import path from "node:path";

export const root = path.resolve(import.meta.dirname, "../../..");
export const cache = process.env.GRAPHMEND_EDITORS ?? path.join(process.env.XDG_CACHE_HOME ?? path.join(os.homedir(), ".cache"), "graphmend-editors");
/** Where what fails leaves its evidence. */
export const kept = path.join(process.env.GRAPHMEND_KEPT ?? path.join(cache, "failed/vscode"), path.basename(process.argv[1], ".test.mjs"));
/** An interpreter with torch and graphmend. */
export const python = process.env.GRAPHMEND_PYTHON ?? path.join(root, ".venv/bin/python");

const began = Date.now();
export const log = (...words) => console.log(`${((Date.now() - began) / 1000).toFixed(1)} s`, ...words);
export const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));

/** Waits until `ask` gives something true, and returns that. */
export async function until(what, ask, ms = 60_000) {
  for (const end = Date.now() + ms; ; await sleep(50)) {
    const found = await ask();
    if (found) return found;
    if (Date.now() > end) throw new Error(`not within ${ms / 1000} s: ${what}`);
  }
}

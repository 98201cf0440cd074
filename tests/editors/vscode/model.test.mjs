// A person at work: a model file of transformers is opened, read and mended with Ctrl+., and saved.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { log, python, until } from "./tools.mjs";
import { inWorkbench, shownText } from "./workbench.mjs";

const SPEC = "import importlib.util as u; print(u.find_spec('transformers').submodule_search_locations[0])";
const TRANSFORMERS = execFileSync(python, ["-c", SPEC], { encoding: "utf8" }).trim();
const MODEL = fs.readFileSync(path.join(TRANSFORMERS, "models/t5/modeling_t5.py"), "utf8");
const LINE = MODEL.split("\n").findIndex(line => line.includes("warnings.warn(__HEAD_MASK_WARNING_MSG")) + 1;

await inWorkbench({ files: { "pyproject.toml": "", "modeling_t5.py": MODEL } }, async vs => {
  const { page } = vs;
  const model = await vs.open("modeling_t5.py");
  await model.click();
  await vs.go(LINE, 1);
  await model.locator(".squiggly-info, .squiggly-warning").first().waitFor();
  log("squiggle in T5");

  await page.keyboard.press("F8"); // the next finding, with its message
  await page.locator(".marker-widget, .zone-widget", { hasText: "warnings.warn()" }).first().waitFor();
  await page.keyboard.press("Escape");
  const warn = model.locator(".view-line", { hasText: /warnings\.warn\(/ }).locator("span > span").filter({ hasText: "warn" }).last();
  const evidence = page.locator(".monaco-hover", { hasText: "is assumed to be compiled" }).first();
  for (let tries = 0; tries < 5 && !(await evidence.isVisible()); tries++) {
    await page.mouse.move(5, 5); // a pointer that rests already asks for no hover, and a busy workbench misses some
    await warn.hover();
    await evidence.waitFor({ timeout: 10_000 }).catch(() => undefined);
  }
  await evidence.waitFor({ timeout: 5_000 });
  log("hover shows the evidence");
  await page.keyboard.press("Escape");

  await page.keyboard.press("Control+.");
  const mend = page.locator(".action-widget .monaco-list-row", { hasText: "Mend graph break" }).first();
  await mend.waitFor();
  log("offered:", (await page.locator(".action-widget .monaco-list-row").allInnerTexts()).join(" | "));
  await mend.click();
  await until("the mend", async () => (await shownText(model)).includes("emit(warnings.warn") && (await page.locator(".tab.dirty").count()));
  await page.keyboard.press("Control+S");
  await until("the file", () => vs.read("modeling_t5.py") !== MODEL);
  execFileSync(python, ["-c", "import ast, sys; ast.parse(open(sys.argv[1]).read())", vs.at("modeling_t5.py")]);
  const before = MODEL.split("\n"), after = vs.read("modeling_t5.py").split("\n");
  const changed = after.filter(line => !before.includes(line));
  assert.ok(changed.length >= 1 && changed.length <= 6, changed.join("\n"));
  assert.deepEqual(before.filter(line => !line.includes("warnings.warn(") && !after.includes(line)), []); // every other line is as it was
  log("T5 is mended on disk:", JSON.stringify(changed));
});

// What the Python extension has chosen is followed: by checks, by the server, and again when it changes.

import path from "node:path";
import { NET } from "./models.mjs";
import { python } from "./tools.mjs";
import { inExtensionHost } from "./workbench.mjs";

// Interpreters that write down what they are run with. Nobody sees the difference but the test.
const REMEMBERS = `#!/bin/sh\necho "$*" >> "$0.ran"\nexec ${python} "$@"\n`;
const OLD = `#!/bin/sh\necho '{"version": [3, 8, 10], "executable": "/opt/old/python3", "libcst": false, "graphmend": false}'\n`;

const files = { "pyproject.toml": "", "net.py": NET, "first-python": REMEMBERS, "second-python": REMEMBERS, "third-python": REMEMBERS, "old-python": OLD };
const options = { files, machine: { "graphmend.interpreter": "" }, extensions: [path.join(import.meta.dirname, "python-extension")] };
await inExtensionHost(options, "python-extension.cjs");

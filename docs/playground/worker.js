// Python beside the page: loads it once, then answers each text with its findings.

async function load() {
  const { loadPyodide } = await import("./pyodide/pyodide.mjs");
  const python = await loadPyodide({ indexURL: new URL("pyodide/", import.meta.url).href });
  const archive = await fetch(new URL("graphmend.zip", import.meta.url));
  python.unpackArchive(await archive.arrayBuffer(), "zip");
  const answer = python.pyimport("answers").answer;
  answer("import torch\n"); // imports what the first text would wait for
  return answer;
}

const ready = load().then(
  (answer) => (postMessage({ ready: true }), answer),
  () => postMessage({ failed: "This copy of the site was built without Pyodide: see CONTRIBUTING.md" }),
);

onmessage = async ({ data }) => {
  const answer = await ready;
  try {
    postMessage({ answer: JSON.parse(answer(data)) });
  } catch (error) {
    postMessage({ answer: { findings: [], problem: `the check failed: ${String(error).trim().split("\n").at(-1)}` } });
  }
};

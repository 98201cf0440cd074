"""Write the data file of a torch version from the files of its wheel, or of an installed torch; torch is not imported.

    python -m graphmend.analysis.torch_facts.generator.generate WHEEL_OR_SITE_PACKAGES [--out DIR]

Two files come out: `torch-X.Y.json`, which every check loads, and `breaks-X.Y.json`, the explanations of graph breaks,
which only `graphmend rule` and the hover need. `docs/torch-facts.md` describes them.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphmend.analysis.torch_facts.generator import schemas, stubs, trace_rules

FORMAT = 1

#: Python modules whose annotated functions are read, and the name that users call them by
MODULES = {
    "torch/__init__.py": "torch",
    "torch/functional.py": "torch",
    "torch/random.py": "torch",
    "torch/serialization.py": "torch",
    "torch/_compile.py": "torch",
    "torch/_tensor_str.py": "torch",
    "torch/autograd/__init__.py": "torch.autograd",
    "torch/autograd/functional.py": "torch.autograd.functional",
    "torch/compiler/__init__.py": "torch.compiler",
    "torch/cuda/__init__.py": "torch.cuda",
    "torch/cuda/memory.py": "torch.cuda",
    "torch/cuda/random.py": "torch.cuda",
    "torch/distributed/__init__.py": "torch.distributed",
    "torch/distributed/distributed_c10d.py": "torch.distributed",
    "torch/jit/__init__.py": "torch.jit",
    "torch/jit/_trace.py": "torch.jit",
    "torch/nn/init.py": "torch.nn.init",
    "torch/nn/utils/clip_grad.py": "torch.nn.utils",
    "torch/nn/utils/convert_parameters.py": "torch.nn.utils",
    "torch/nn/utils/rnn.py": "torch.nn.utils.rnn",
    "torch/overrides.py": "torch.overrides",
    "torch/signal/windows/windows.py": "torch.signal.windows",
    "torch/sparse/__init__.py": "torch.sparse",
    "torch/utils/checkpoint.py": "torch.utils.checkpoint",
}
#: NumPy's modules and the files of torch._numpy that stand in for them while tracing
_NUMPY = {
    "numpy": (
        "__init__",
        "_binary_ufuncs_impl",
        "_dtypes",
        "_funcs_impl",
        "_getlimits",
        "_reductions_impl",
        "_ufuncs",
        "_unary_ufuncs_impl",
    ),
    "numpy.fft": ("fft",),
    "numpy.linalg": ("linalg",),
    "numpy.random": ("random",),
}
_NATIVE_MODULES = ("fft", "linalg", "special")


class Tree:
    """The files of a wheel or of a site-packages folder, by path."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._zip = zipfile.ZipFile(root) if root.is_file() else None

    def text(self, path: str) -> str | None:
        """A file's text; None where there is no such file."""
        if self._zip is not None:
            return self._zip.read(path).decode() if path in self._zip.NameToInfo else None
        file = self._root / path
        return file.read_text(encoding="utf-8") if file.is_file() else None

    def module(self, path: str) -> ast.Module:
        """A file's syntax tree; empty where there is no such file."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.parse(self.text(path) or "")

    def modules(self, folder: str) -> Iterator[ast.Module]:
        """The Python modules directly in a folder."""
        if self._zip is not None:
            names = [n for n in self._zip.namelist() if re.fullmatch(rf"{folder}/\w+\.py", n)]
        else:
            names = [f"{folder}/{p.name}" for p in (self._root / folder).glob("*.py")]
        return map(self.module, sorted(names))


def version(tree: Tree) -> str:
    """The version as torch states it, without the local part: `2.13.0`."""
    stated = re.search(r"__version__ = '([^'+]+)", tree.text("torch/version.py") or "")
    if stated is None:
        raise SystemExit("no torch/version.py here")
    return stated[1]


def functions(tree: Tree) -> tuple[dict[str, dict[str, list[str]]], dict[str, str]]:
    """All overloads by module and name; the attributes of tensors."""
    structs = stubs.named_tuples(tree.module("torch/return_types.pyi"))
    operators = schemas.read(tree.text("torchgen/packaged/ATen/native/native_functions.yaml") or "")
    native = schemas.by_name(operators)
    found: dict[str, dict[str, list[str]]] = {name: {} for name in MODULES.values()}

    private = {}
    for path, name in MODULES.items():
        module = tree.module(path)
        defined = stubs.functions(module.body, structs)
        private.update(defined)
        defined.update(stubs.dispatched(module, defined))
        found[name].update({k: v for k, v in defined.items() if not k.startswith("_")})

    binding = tree.module("torch/_C/__init__.pyi")
    exported = {k: v for k, v in stubs.functions(binding.body, structs).items() if not k.startswith("_")}
    variable = stubs.functions(tree.module("torch/_C/_VariableFunctions.pyi").body, structs)
    for name, texts in {**exported, **variable}.items():
        known = found["torch"].get(name)
        if known is None or all(t.endswith(">?") for t in known):
            found["torch"][name] = schemas.with_flags(name, texts, native, bound=False)
    for name in _NATIVE_MODULES:
        found[f"torch.{name}"] = schemas.module_functions(operators, name)
    found["torch.nn.functional"] = _nn_functional(tree, structs, found, schemas.module_functions(operators, "nn"))
    found["torch.nn.modules"] = stubs.forwards(tree.modules("torch/nn/modules"), structs)
    body = stubs.class_body(binding, "TensorBase")
    found["torch.Tensor"] = _tensor_methods(tree, body, structs, native, found["torch"])
    attributes = stubs.attributes(body, structs)
    attributes.update(stubs.attributes(stubs.class_body(tree.module("torch/_tensor.py"), "Tensor"), structs))
    return found, attributes


def _nn_functional(
    tree: Tree,
    structs: dict[str, str],
    found: dict[str, dict[str, list[str]]],
    native: dict[str, list[str]],
) -> dict[str, list[str]]:
    module = tree.module("torch/nn/functional.py")
    defined = stubs.functions(module.body, structs)
    defined.update(stubs.dispatched(module, defined))
    defined.update(stubs.functions(tree.module("torch/nn/functional.pyi").body, structs))
    for name, target in stubs.documented_aliases(module).items():
        owner, _, original = target.rpartition(".")
        texts = native.get(original) if owner == "torch._C._nn" else found.get(owner, {}).get(original)
        if texts:
            defined[name] = texts
    for name, texts in defined.items():  # relu and others call the torch function of the same name
        twins = {t.partition("#")[2] for t in found["torch"].get(name, ())}
        if len(twins) == 1 and (flags := twins.pop().translate({ord("i"): None, ord("v"): None})):
            defined[name] = [t if "#" in t else f"{t}#{flags}" for t in texts]
    return defined


def _tensor_methods(
    tree: Tree,
    body: list[ast.stmt],
    structs: dict[str, str],
    native: dict[str, list[schemas.Schema]],
    functions: dict[str, list[str]],
) -> dict[str, list[str]]:
    methods = stubs.functions(body, structs, bound=True)
    python = stubs.functions(stubs.class_body(tree.module("torch/_tensor.py"), "Tensor"), structs, bound=True)
    for name, texts in python.items():
        if all(t.endswith(">?") for t in texts) and name in functions:  # unique, norm, ...: the function's results
            texts = [
                t.partition(",")[2] if "," in t.partition(">")[0] else ">" + t.partition(">")[2]
                for t in functions[name]
            ]
        if name not in methods or not all(t.endswith(">?") for t in texts):
            methods[name] = texts
    return {name: schemas.with_flags(name, texts, native, bound=True) for name, texts in methods.items()}


def rules(tree: Tree, functions: dict[str, dict[str, list[str]]]) -> dict[str, Any]:
    """What Dynamo's trace rules say, restricted to what a caller outside of torch can name."""
    table = trace_rules.Rules(tree.module("torch/_dynamo/trace_rules.py"))
    traced = table.traced
    bindings = set(stubs.functions(tree.module("torch/_C/_VariableFunctions.pyi").body, {}))
    bindings |= set(stubs.functions(tree.module("torch/_C/__init__.pyi").body, {}))
    spellings = ("torch.{}", "torch._C.{}", "torch._C._VariableFunctions.{}", "torch._VF.{}")
    refused = [
        f"torch.{n}" for n in bindings if not n.startswith("_") and not traced & {s.format(n) for s in spellings}
    ]
    for path, public in MODULES.items():
        if table.skips(path):
            own = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            names = {n for n in stubs.functions(tree.module(path).body, {}) if not n.startswith("_")}
            refused += [f"{public}.{n}" for n in names if not traced & {f"{public}.{n}", f"{own}.{n}"}]
    handled = trace_rules.handled_functions(tree.module("torch/_dynamo/variables/torch.py"))
    python: dict[str, list[str]] = {}
    for name in sorted(n for n in traced if not n.startswith(("torch._C.", "torch._VF.", "math."))):
        owner, _, last = name.rpartition(".")
        if owner != "torch" or last not in bindings:
            python.setdefault(owner, []).append(last)
    return {
        "skipped": sorted({*table.table("BUILTIN_SKIPLIST"), *table.table("THIRDPARTY_SKIPLIST"), "unittest"}),
        "skipped_torch": table.table("MOD_SKIPLIST"),
        "inlined": sorted({*table.table("MOD_INLINELIST"), *table.table("LEGACY_MOD_INLINELIST")}),
        "inlined_when_called": table.table("BUILTIN_INLINE_WHEN_CALLED"),
        "refused": sorted({*refused, *table.refused} - {n for n in traced if n in table.refused}),
        "traced": {owner: " ".join(names) for owner, names in python.items()},
        "unfolded": [
            f"{module}.{name}"
            for module, names in functions.items()
            for name, texts in names.items()
            if f"{module}.{name}" in traced - handled and all(_is_python_value(t) for t in texts)
        ],
        "folded": [n for n in sorted(traced) if n.startswith("math.")],
        "numpy": {
            module: " ".join(trace_rules.public_names(tree.module(f"torch/_numpy/{f}.py") for f in files))
            for module, files in _NUMPY.items()
        },
        "polyfilled": trace_rules.polyfilled(tree.modules("torch/_dynamo/polyfills")),
    }


def _is_python_value(overload: str) -> bool:
    """Whether an overload gives a number, a text or the like, and not one that is made from a tensor's values."""
    returns, _, flags = overload.rpartition(">")[2].partition("#")
    return returns in ("int", "float", "bool", "str", "dtype", "device", "size", "layout") and "x" not in flags


def breaks(tree: Tree) -> dict[str, list[Any]]:
    """Graph-break id to [type, explanation, hints], the newest wording of each.

    The registry is made from Dynamo's source: where an explanation is put together at run time it has an expression
    instead. Of that its literal parts are kept.
    """
    registry = json.loads(tree.text("torch/_dynamo/graph_break_registry.json") or "{}")
    found: dict[str, list[Any]] = {}
    for key, entries in sorted(registry.items()):
        newest = entries[0]
        explanation = newest.get("Explanation", "")
        if explanation.startswith(('"', 'f"')):
            explanation = "".join(re.findall(r'"([^"]*)"', explanation))
        hints: list[str] = []
        for hint in newest.get("Hints", ()):
            words = " ".join(hint.split())
            if hints and not words[:1].isupper():  # the registry cuts hints where their source has a line break
                hints[-1] += f" {words}"
            else:
                hints.append(words)
        found[key] = [newest["Gb_type"], explanation if " " in explanation else "", hints]
    return found


def generate(tree: Tree) -> tuple[dict[str, Any], dict[str, Any]]:
    """The two data files of one torch."""
    found, attributes = functions(tree)
    stated = version(tree)
    facts = {
        "format": FORMAT,
        "version": stated,
        "attributes": dict(sorted(attributes.items())),
        "functions": {
            module: {name: "|".join(dict.fromkeys(texts)) for name, texts in sorted(names.items())}
            for module, names in sorted(found.items())
            if names
        },
        "dynamo": rules(tree, found),
    }
    return facts, {"format": FORMAT, "version": stated, "breaks": breaks(tree)}


def write(tree: Tree, folder: Path) -> list[Path]:
    """Write the data files into a folder; the paths written."""
    facts, explanations = generate(tree)
    minor = ".".join(facts["version"].split(".")[:2])
    paths = [folder / f"torch-{minor}.json", folder / f"breaks-{minor}.json"]
    for path, data in zip(paths, (facts, explanations), strict=True):
        path.write_text(json.dumps(data, separators=(",", ":"), ensure_ascii=False) + "\n", encoding="utf-8")
    return paths


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("source", type=Path, metavar="WHEEL_OR_SITE_PACKAGES")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1], metavar="DIR")
    arguments = parser.parse_args()
    for path in write(Tree(arguments.source), arguments.out):
        print(f"{path} {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

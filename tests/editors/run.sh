#!/usr/bin/env bash
# run.sh [nvim|emacs|vscode|jupyter|playground ...]: the end-to-end tests in real editors, and of the playground in a browser. What they need is installed by setup.sh, once.
# GRAPHMEND_PYTHON is an interpreter with torch, transformers and graphmend; by default .venv's.
set -euo pipefail
cd "$(dirname "$0")/../.."
export GRAPHMEND_EDITORS=${GRAPHMEND_EDITORS:-${XDG_CACHE_HOME:-$HOME/.cache}/graphmend-editors}
export GRAPHMEND_PYTHON=${GRAPHMEND_PYTHON:-$PWD/.venv/bin/python}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
[ $# -gt 0 ] || set -- nvim emacs vscode jupyter playground
"$GRAPHMEND_PYTHON" -c 'import graphmend, torch, transformers' ||
    { echo "run.sh: $GRAPHMEND_PYTHON needs graphmend, torch and transformers: make venv" >&2; exit 2; }
tests/editors/setup.sh "$@"
mkdir -p "$GRAPHMEND_EDITORS/failed"
find "$GRAPHMEND_EDITORS/failed" -mindepth 1 -maxdepth 1 -mtime +7 -exec rm -rf {} +

tried() {  # tried COMMAND...: on a machine of continuous integration, which may stall, twice, and it says so
    "$@" && return
    local status=$?
    echo "FAIL $*: ended with $status"
    [ -n "${CI:-}" ] && echo "-- once more" && "$@"
}

in_nvim() {  # an environment of its own: pynvim is of no use elsewhere; and settings of its own, none
    : > "$GRAPHMEND_KEPT/pytest.ini"
    tried timeout 900 "$GRAPHMEND_EDITORS/nvim/bin/python" -m pytest -q -p no:cacheprovider -c "$GRAPHMEND_KEPT/pytest.ini" \
        --basetemp "$GRAPHMEND_KEPT/folders" -o tmp_path_retention_policy=failed \
        --rootdir tests/editors --confcutdir tests/editors --import-mode=importlib tests/editors/test_neovim.py
}

in_emacs() {
    mkdir "$GRAPHMEND_KEPT/home"
    tried env HOME="$GRAPHMEND_KEPT/home" timeout 300 emacs --batch --no-init-file -l tests/editors/eglot.el
}

in_vscode() {
    npm ci --prefix vscode-extension --no-audit --no-fund --loglevel=error &&
        PYTHON=$GRAPHMEND_PYTHON npm run --silent --prefix vscode-extension package &&
        "$GRAPHMEND_PYTHON" vscode-extension/scripts/check_package.py \
            "$(node -p '`${process.platform}-${process.arch}`')" vscode-extension/graphmend-*.vsix || return
    local test failed=0
    for test in tests/editors/vscode/*.test.mjs; do
        echo "-- $(basename "$test" .test.mjs)"
        tried timeout 600 node "$test" || failed=1
    done
    return $failed
}

in_jupyter() {
    tried timeout 400 node tests/editors/jupyterlab.test.mjs
}

in_playground() {
    npm ci --prefix docs/playground --no-audit --no-fund --loglevel=error &&
        NO_MKDOCS_2_WARNING=1 "$GRAPHMEND_PYTHON" -m mkdocs build --strict -q --site-dir "$GRAPHMEND_KEPT/site" &&
        tried timeout 300 node tests/editors/playground.test.mjs "$GRAPHMEND_KEPT/site"
}

failed=()
for editor in "$@"; do
    echo "== $editor"
    GRAPHMEND_KEPT=$(mktemp -d "$GRAPHMEND_EDITORS/failed/$editor.XXXXXX")  # of this run only: clones share the folder
    export GRAPHMEND_KEPT
    if "in_$editor" 2>&1 | tee "$GRAPHMEND_KEPT/output.log"; then
        rm -rf "$GRAPHMEND_KEPT"
    else
        failed+=("$GRAPHMEND_KEPT")
    fi
done
for kept in "${failed[@]}"; do  # at the end, which is what is read of a long log
    echo "== $(basename "${kept%.*}") failed; output, logs and screenshots are in $kept"
    grep -E -A 6 'FAIL|^E  |not within' "$kept/output.log" | tail -n 40 || tail -n 20 "$kept/output.log"
done
exit $((${#failed[@]} > 0))

#!/usr/bin/env bash
# run.sh [nvim|emacs|vscode ...]: the end-to-end tests in real editors. What they need is installed by setup.sh, once.
# GRAPHMEND_PYTHON is an interpreter with torch and graphmend; by default .venv's.
set -euo pipefail
cd "$(dirname "$0")/../.."
export GRAPHMEND_EDITORS=${GRAPHMEND_EDITORS:-${XDG_CACHE_HOME:-$HOME/.cache}/graphmend-editors}
export GRAPHMEND_PYTHON=${GRAPHMEND_PYTHON:-$PWD/.venv/bin/python}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
[ $# -gt 0 ] || set -- nvim emacs vscode
"$GRAPHMEND_PYTHON" -c 'import graphmend, torch' || { echo "run.sh: $GRAPHMEND_PYTHON needs graphmend and torch" >&2; exit 2; }
tests/editors/setup.sh "$@"

status=0
for editor in "$@"; do
    echo "== $editor"
    case $editor in
        nvim)
            # an environment of its own: pynvim is of no use elsewhere
            timeout 900 "$GRAPHMEND_EDITORS/nvim/bin/python" -m pytest -q -p no:cacheprovider -c /dev/null \
                --rootdir tests/editors --confcutdir tests/editors --import-mode=importlib tests/editors/test_neovim.py || status=1
            ;;
        emacs)
            home=$(mktemp -d)
            HOME=$home timeout 120 emacs --batch --no-init-file -l tests/editors/eglot.el || status=1
            rm -rf "$home"
            ;;
        vscode)
            npm ci --prefix vscode-extension --no-audit --no-fund --loglevel=error
            PYTHON=$GRAPHMEND_PYTHON npm run --silent --prefix vscode-extension package
            for test in tests/editors/vscode/*.test.mjs; do
                timeout 600 node "$test" || status=1
            done
            ;;
    esac
done
exit $status

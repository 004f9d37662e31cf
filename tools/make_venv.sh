#!/bin/sh
# usage: make_venv.sh FOLDER [PYTHON]
# Make a virtual environment with PYTHON, or with the first Python >= 3.11 on PATH.
set -u
folder=$1
wanted=${2:-}
newest="python3 python3.14 python3.13 python3.12 python3.11 python"

fail() {
    echo "$1" >&2
    exit 1
}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

if [ -n "$wanted" ]; then
    is_new_enough "$wanted" ||
        fail "PYTHON=$wanted is not a Python 3.11 or newer; give the command or path of one that is."
    chosen=$wanted
else
    for chosen in $newest ''; do
        [ -n "$chosen" ] && is_new_enough "$chosen" && break
    done
    [ -n "$chosen" ] ||
        fail "No Python 3.11 or newer found on PATH; install one, or name it: make PYTHON=/path/to/python3.11 ..."
fi

"$chosen" -c 'import venv, ensurepip' >/dev/null 2>&1 || fail \
    "$chosen has no venv module with pip; install it (Debian, Ubuntu: apt-get install python3-venv), or choose another Python with PYTHON=."

echo "Making $folder with $("$chosen" --version) ..."
"$chosen" -m venv --clear "$folder" || {
    rm -rf "$folder"
    fail "$chosen could not make the virtual environment '$folder'; see its message above."
}

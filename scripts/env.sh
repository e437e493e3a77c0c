# Sourced by the scripts: makes the virtual environment in .venv from nothing but Python 3.11 or newer, once for
# each state of pyproject.toml and the pinned versions, and puts it first on the PATH.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

find_python() {
    local name
    for name in "${PYTHON:-}" python3.11 python3 python3.12 python3.13 python3.14 python; do
        if [ -n "$name" ] && "$name" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$name"
            return
        fi
    done
    echo "Python 3.11 or newer with its venv module is needed and was not found (set PYTHON to its path)" >&2
    exit 2
}

wanted=$(cat pyproject.toml scripts/requirements.txt | cksum)
stamp="$root/.venv/stamp"
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    (
        # Two scripts started at once must not build one environment together.
        if command -v flock >/dev/null; then exec 9>"$root/.venv.lock" && flock 9; fi
        if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
            echo "setting up .venv" >&2
            python=$(find_python)
            "$python" -m venv --clear .venv
            .venv/bin/python -m pip install --quiet --disable-pip-version-check -r scripts/requirements.txt >&2
            .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . >&2
            echo "$wanted" >"$stamp"
        fi
    )
fi
export PATH="$root/.venv/bin:$PATH"

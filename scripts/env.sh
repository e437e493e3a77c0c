# Sourced by the scripts: makes the virtual environment in .venv from nothing but Python 3.11 or newer, once for
# each state of pyproject.toml and the pinned versions, and puts it first on the PATH.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

# shellcheck source=scripts/python.sh
source scripts/python.sh

# The folder is part of it because the scripts of an environment name it: a copy of the tree needs its own.
wanted=$({ pwd && cat pyproject.toml scripts/requirements.txt; } | cksum)
stamp="$root/.venv/stamp"
ready() { [ -x .venv/bin/python ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; }
if ! ready; then
    (
        # Two scripts started at once must not build one environment together.
        if command -v flock >/dev/null; then exec 9>"$root/.venv.lock" && flock 9; fi
        if ! ready; then
            echo "setting up .venv" >&2
            python=$(find_python)
            "$python" -m venv --clear .venv
            .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -r scripts/requirements.txt >&2
            # With all cores, which pip does with one. What is no valid source there is none of ours.
            .venv/bin/python -m compileall -qq -j 0 .venv/lib || true
            .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . >&2
            echo "$wanted" >"$stamp"
        fi
    )
fi
export PATH="$root/.venv/bin:$PATH"

# Sourced by the scripts: finds Python 3.11 or newer.
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

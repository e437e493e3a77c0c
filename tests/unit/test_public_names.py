"""The package's public names are there, and cost nothing until they are used."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import vc_fallback

ROOT = Path(vc_fallback.__file__).parent


def python(code: str) -> str:
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", code], cwd=ROOT.parent, capture_output=True, text=True, check=True, timeout=30
    )
    return done.stdout


@pytest.mark.parametrize("name", vc_fallback.__all__)
def test_a_public_name_can_be_had_and_is_documented(name: str) -> None:
    value = getattr(vc_fallback, name)
    assert value is getattr(vc_fallback, name)
    if isinstance(value, type):
        assert value.__doc__


def test_the_names_for_type_checkers_are_those_at_run_time() -> None:
    tree = ast.parse((ROOT / "__init__.py").read_text())
    (branch,) = (node for node in tree.body if isinstance(node, ast.If))
    imported = {
        alias.name: node.module for node in branch.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert sorted(imported) == sorted(vc_fallback.__all__)
    for name, module in imported.items():
        assert getattr(vc_fallback, name) is getattr(sys.modules[str(module)], name)
    assert set(vc_fallback.__all__) <= set(dir(vc_fallback))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        vc_fallback.Nonsense  # type: ignore[attr-defined]  # noqa: B018


def test_importing_the_package_imports_nothing_else_and_takes_less_than_200_ms() -> None:
    """`import vc_fallback` ≤ 200 ms; the best of five, since the machine has other work."""
    code = (
        "import json, sys, time\n"
        "before = set(sys.modules)\n"
        "begun = time.perf_counter()\n"
        "import vc_fallback\n"
        "took = time.perf_counter() - begun\n"
        "print(json.dumps([took, sorted(set(sys.modules) - before)]))\n"
    )
    runs = [json.loads(python(code)) for _ in range(5)]
    assert min(took for took, _ in runs) < 0.2
    loaded = {module.partition(".")[0] for _, modules in runs for module in modules}
    assert not loaded & {"anyio", "httpx", "httptools", "pydantic", "ssz", "typer"}
    assert [module for module in runs[0][1] if module.startswith("vc_fallback.")] == []


def test_the_monitor_is_imported_without_what_only_others_need() -> None:
    """`ssz` and what else is slow to import is loaded when used."""
    code = "import json, sys, vc_fallback\nvc_fallback.HeadMonitor\nprint(json.dumps(sorted(sys.modules)))\n"
    loaded = {module.partition(".")[0] for module in json.loads(python(code))}
    assert not loaded & {"ssz", "typer", "pytest"}

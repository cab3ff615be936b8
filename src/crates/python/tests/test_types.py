"""Tests that the stubs match the module, and that everything public has a docstring."""

import inspect
import subprocess
import sys

import cashrank


def test_stubs_match_the_module():
    command = [sys.executable, "-m", "mypy.stubtest", "cashrank"]
    checked = subprocess.run(command, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_everything_has_a_docstring():
    for name in cashrank.__all__:
        found = getattr(cashrank, name)
        if name.startswith("__"):
            continue
        assert inspect.getdoc(found), name
        if not isinstance(found, type) or issubclass(found, Exception):
            continue
        for member, value in vars(found).items():
            if not member.startswith("_"):
                assert inspect.getdoc(value), f"{name}.{member}"


def test_nothing_else_is_needed_to_import_it():
    """NumPy and Arrow libraries are imported only by functions that use them."""
    code = "import sys, cashrank; assert not {'numpy', 'pyarrow', 'pandas'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)

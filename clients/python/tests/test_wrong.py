"""Wrong clients: mistakes in the package, each of which the other tests catch."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "src" / "traceflake"

PROCESS = "from os import getpid\n", "def getpid():\n    return 0\n"
STATES = "self._states: dict[int, _State] = {}"
HOOK = "os.register_at_fork(after_in_child=self._states.clear)"
LAST = "            last = state.last\n"
RESTORE = "if register_after_restore is not None:"
FIRST = "globals().setdefault('_first', self) is self"

WRONG = {
    "a fork is not noticed": [PROCESS],
    "a fork in C is not noticed": [PROCESS, (STATES, f"{STATES}\n        {HOOK}")],
    "a fork restarts the first generator": [
        PROCESS,
        (STATES, f"{STATES}\n        if {FIRST}:\n            {HOOK}"),
    ],
    "a restore is not noticed": [("register_after_restore(self._states.clear)", "pass")],
    "a restore restarts the first generator": [(RESTORE, f"{RESTORE[:-1]} and {FIRST}:")],
    "the clock is read before the state": [
        (f"{LAST}            floor =", "            floor ="),
        ("            floor = floor or 1", f"{LAST}            floor = floor or 1"),
    ],
    "trace IDs are not said to be random": [("        return True", "        return False")],
    "DASHES is not read": [('"deferred_sampled", "dashes"):', '"deferred_sampled"):')],
    "empty settings are set": [('if v not in (None, "")', "if v is not None")],
    "yes is false": [
        ('_one_of(name, str(value), ("true", "false")) == "true"', 'str(value).lower() == "true"'),
    ],
    "an unknown option is ignored": [
        ("if v not in", "if k != 'b3_encodign' and v not in"),
    ],
    "any white space is stripped": [('part.strip(" \\t")', "part.strip()")],
    "a join has the random flag": [
        ("=span.trace_flags if flags", "=TraceFlags(span.trace_flags | 2) if flags"),
    ],
    "there are no types": [],
}


def run(folder):
    """Return the status of the other tests with the package in a folder."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-W", "ignore"]
    command += [TESTS / f"test_{name}.py" for name in ("life", "propagator", "id_generator", "sdk")]
    command += ["-k", "not configuration and not environment"]
    env = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def copy(folder):
    return Path(shutil.copytree(PACKAGE, folder / "traceflake"))


def test_right(tmp_path):
    copy(tmp_path)
    result = run(tmp_path)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name, tmp_path):
    package = copy(tmp_path)
    for right, wrong in WRONG[name]:
        files = [file for file in package.glob("*.py") if right in file.read_text()]
        assert files, f"nothing contains {right!r}"
        for file in files:
            file.write_text(file.read_text().replace(right, wrong))
    if not WRONG[name]:
        (package / "py.typed").unlink()
    result = run(tmp_path)
    assert result.returncode == 1, result.stdout + result.stderr

"""Runs the test suites of pexpect and ptyprocess with every child under `atlasbridge run`, and says what differs.

    tools/expect_suites.py FOLDER

FOLDER holds checkouts of both (`pexpect`, `ptyprocess`).  Each suite runs as it is and wrapped; a case that passes only
without us is a difference.  Those that differ by design are listed in docs/reliability.md.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PLUGIN = """
import os
import ptyprocess
from ptyprocess.ptyprocess import PtyProcess
from ptyprocess.util import which

_spawn = PtyProcess.spawn.__func__
_command = os.environ["WRAPPED_BY"].split("\\t")


def spawn(cls, argv, *args, **kwargs):
    env = kwargs.get("env") or (args[1] if len(args) > 1 else None)
    path = which(argv[0], path=(env or os.environ).get("PATH"))
    if path is None:
        return _spawn(cls, argv, *args, **kwargs)
    return _spawn(cls, [*_command, path, *argv[1:]], *args, **kwargs)


PtyProcess.spawn = classmethod(spawn)
"""
SUITES = {"ptyprocess": "ptyprocess", "pexpect": "pexpect"}
_RESULT = re.compile(r"^(?:\S+::)?(\S+::\S+) (PASSED|FAILED|ERROR|SKIPPED)", re.M)


def run_suite(folder: Path, home: Path, wrapped: bool, words: list[str]) -> dict[str, str]:
    environ = {**os.environ, "ATLASBRIDGE_HOME": str(home), "PYTHONPATH": os.pathsep.join([str(home), str(folder)])}
    (home / "wrapped_children.py").write_text(PLUGIN, "utf-8")
    command = [sys.executable, "-m", "atlasbridge", "run", "--no-hub", "--"]
    environ["WRAPPED_BY"] = "\t".join(command)
    plugin = ["-p", "wrapped_children"] if wrapped else []
    pytest = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-p", "no:xdist", "-c", os.devnull]
    limit = ["--timeout", "60"] if _has_timeout() else []
    done = subprocess.run(
        [*pytest, *limit, "--rootdir", str(folder), *plugin, *(words or ["tests"])],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
    )
    found = {name.rpartition("/")[2]: outcome for name, outcome in _RESULT.findall(done.stdout)}
    if not found:
        sys.stderr.write(done.stdout[-2000:] + done.stderr[-2000:])
    return found


def _has_timeout() -> bool:
    return subprocess.run([sys.executable, "-c", "import pytest_timeout"], capture_output=True).returncode == 0


def main(words: list[str]) -> int:
    folder, only = Path(words[0]).resolve(), words[1:]
    different = 0
    for name in SUITES:
        with tempfile.TemporaryDirectory() as home:
            plain = run_suite(folder / name, Path(home), False, only)
            ours = run_suite(folder / name, Path(home), True, only)
        passed = [case for case, outcome in plain.items() if outcome == "PASSED"]
        differ = [case for case in passed if ours.get(case) != "PASSED"]
        different += len(differ)
        sys.stdout.write(f"{name}: {len(passed)} pass without us, {len(passed) - len(differ)} of them wrapped\n")
        sys.stdout.write("".join(f"  {case}: {ours.get(case, 'not run')}\n" for case in differ))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The process that runs the tests in forks of itself says what each of them said, and loses none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

FILES = {
    "test_first.py": """
        import os, signal
        def test_passes(): print("of the first file")
        def test_dies(): os.kill(os.getpid(), signal.SIGKILL)
        def test_after_the_death(): print("said later"); assert 0, "seen"
    """,
    "test_second.py": """
        import os, pytest
        @pytest.fixture(scope="module")
        def made(): yield; print("taken down in its own process")
        def test_has_it(made): pass
        @pytest.mark.parametrize("number", range(20))
        def test_many(number): assert number != 7
    """,
}


def test_each_test_is_run_once_and_one_that_kills_its_process_fails_alone(tmp_path: Path) -> None:
    for name, text in FILES.items():
        lines = text.strip("\n").splitlines()
        (tmp_path / name).write_text("\n".join(line[8:] for line in lines))
    words = ["-m", "pytest", "-p", "tests.support.forked_workers", "--forks", "2", "-v", "-p", "no:cacheprovider"]
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, *words, "-c", os.devnull, str(tmp_path)], env=environ, capture_output=True, text=True
    )
    said = done.stdout
    assert done.returncode == 1, said + done.stderr
    assert "3 failed, 21 passed" in said
    assert "the process of the tests ended: status -9" in said
    assert said.count("test_many[19] PASSED") == 1
    report = said.partition("FAILURES")[2]
    assert "said later" in report and "of the first file" not in report

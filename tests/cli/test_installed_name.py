"""The package `atlasbridge-pty`: installed from a checkout, told from the unrelated `atlasbridge` of PyPI."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.support.hubs import short_home

from atlasbridge.cli.doctor import check_name
from atlasbridge.core import distribution

ROOT = Path(__file__).resolve().parents[2]
NEEDS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
EXTRAS = {name for name, needs in NEEDS.items() if needs}
INSTALLS = re.compile(r"(?:pipx|pip|uv tool) (?:un)?install (?:--[\w-]+ )*(['\"]?)([^\s'\"`]+)\1")


def stranger(prefix: Path, name: str = "atlasbridge", version: str = "1.10.0") -> Path:
    """An environment into which somebody installed another program of our name; its command."""
    site = prefix / "lib" / "python3.11" / "site-packages"
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text("[console_scripts]\natlasbridge = atlasbridge.app:main\n")
    (info / "RECORD").write_text("atlasbridge/__init__.py,,\n")
    command = prefix / "bin" / "atlasbridge"
    command.parent.mkdir()
    python = f"{prefix}/bin/python3"
    in_shell = f"/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''"
    command.write_text(f"#!{in_shell if ' ' in python else python}\nimport sys\n")  # as pip writes it
    command.chmod(0o755)
    return command


@pytest.mark.parametrize("folder", ["plain", "with a blank"])
def test_the_command_of_another_program_on_the_path_is_noticed(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = tmp_path / folder
    command = stranger(prefix)
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")
    assert distribution.others() == [f"the command {command} belongs to atlasbridge 1.10.0 in {prefix}"]
    (found,) = check_name()
    assert (found.state, "docs/install.md" in found.hint) == ("fault", True)


def test_our_own_command_in_another_environment_is_no_stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = stranger(tmp_path, "atlasbridge-pty", "0.1.0")
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")
    assert distribution.others() == []
    assert [check.state for check in check_name()] == ["ok"]


def test_another_program_in_the_same_environment_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stranger(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "lib" / "python3.11" / "site-packages"))
    assert distribution.others() == [f"atlasbridge 1.10.0 is installed in {sys.prefix} as well"]


def test_version_warns_of_another_program(tmp_path: Path) -> None:
    command = stranger(tmp_path)
    environ = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}"}
    done = subprocess.run([sys.executable, "-m", "atlasbridge", "version"], env=environ, capture_output=True, text=True)
    assert done.stdout.startswith("atlasbridge 0.")
    assert f"Warning: the command {command} belongs to atlasbridge 1.10.0" in done.stderr


@pytest.mark.parametrize(
    ("prefix", "command"),
    [
        ("/home/ada/.local/pipx/venvs/atlasbridge-pty", "pipx install --force"),
        ("/home/ada/.local/share/uv/tools/atlasbridge-pty", "uv tool install --force"),
        ("/home/ada/a b/.venv", f"{shlex.quote(sys.executable)} -m pip install"),
    ],
)
def test_the_line_that_installs_an_extra_fits_the_environment(
    prefix: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", prefix)
    monkeypatch.setattr(distribution, "checkout", lambda: Path("/home/ada/a b/atlasbridge"))
    assert distribution.install_line("slack") == f"{command} '/home/ada/a b/atlasbridge[slack]'"
    monkeypatch.setattr(distribution, "checkout", lambda: None)
    assert distribution.install_line("slack") == f"in a checkout of AtlasBridge: {command} '.[slack]'"


def test_every_install_line_of_the_documents_names_the_checkout_and_extras_that_exist() -> None:
    """Not the name on PyPI, which is another program, nor ours, which is not there yet."""
    pages = [ROOT / "README.md", ROOT / "SECURITY.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    wrong = []
    for page in pages:
        for _, what in INSTALLS.findall(page.read_text("utf-8")):
            name, _, extras = what.partition("[")
            known = set(filter(None, extras.rstrip("]").split(","))) <= EXTRAS
            if name.startswith("atlasbridge") and page.name != "install.md" and what != "atlasbridge-pty":
                wrong.append(f"{page.name}: {what}")
            if not known:
                wrong.append(f"{page.name}: {what} is no extra")
    assert wrong == []
    assert not list((ROOT / "src").rglob("*.py")) or not [
        str(path) for path in (ROOT / "src").rglob("*.py") if "install 'atlasbridge" in path.read_text("utf-8")
    ]


def test_every_extra_is_on_the_page_about_installing() -> None:
    page = (ROOT / "docs" / "install.md").read_text("utf-8")
    assert {extra for extra in EXTRAS if f"| `{extra}` |" in page} == EXTRAS


@pytest.mark.landing
def test_a_fresh_environment_gets_the_command_from_a_checkout_by_the_documented_line(tmp_path: Path) -> None:
    """Without the network: the packages that it needs are those of this environment."""
    place = tmp_path / "fresh"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    python = place / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps"]
    build = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONPATH": _needed()}
    subprocess.run([*install, "--no-build-isolation", "."], cwd=ROOT, env=build, check=True)
    environ = {**os.environ, "PATH": f"{place}/bin:/usr/bin:/bin"}
    done = subprocess.run(["atlasbridge", "--version"], cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    where = subprocess.run(
        [
            python,
            "-c",
            "import atlasbridge, importlib.metadata as m; print(atlasbridge.__file__, m.version('atlasbridge-pty'))",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert where.startswith(str(place)) and done.stdout.split()[1] in where


def _needed() -> str:
    """The folder of the packages that this environment has, without the checkout's own entry."""
    import click

    return str(Path(click.__file__).parents[1])


@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_a_fresh_environment_runs_a_session_and_has_the_extra_that_was_named(tmp_path: Path) -> None:
    """With the network, as a new user types it."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "fresh"], check=True)
    bin_folder = tmp_path / "fresh" / "bin"
    subprocess.run([bin_folder / "pip", "install", "--quiet", ".[slack]"], cwd=ROOT, check=True)
    environ = {**os.environ, "PATH": f"{bin_folder}:/usr/bin:/bin", "ATLASBRIDGE_SESSION_ZYGOTE": "0"}

    def said(*words: str) -> str:
        with short_home() as home:
            own = {**environ, "ATLASBRIDGE_HOME": str(home.root)}
            done = subprocess.run(words, cwd=tmp_path, env=own, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    assert "hello" in said("atlasbridge", "run", "--no-hub", "echo", "hello")
    assert said("atlasbridge", "version").startswith("atlasbridge ")
    assert "slack_sdk" in said("python", "-c", "import slack_sdk; print(slack_sdk.__name__)")
    assert f"{bin_folder}/atlasbridge" in said("atlasbridge", "doctor")

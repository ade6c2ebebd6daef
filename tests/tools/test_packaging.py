"""What packages are made from: man pages, the list of parts, versions that agree, and wheels that come out the same."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import hatchling
import pytest
from tests.support.terminal import ATLASBRIDGE

from atlasbridge import __version__
from atlasbridge.cli.catalogue import COMMANDS
from atlasbridge.cli.help import man_pages
from tools import sbom

ROOT = Path(__file__).parents[2]
LARGEST_WHEEL = 3 * 1024 * 1024


def test_there_is_a_man_page_for_every_command() -> None:
    pages = dict(man_pages())
    assert set(pages) == {"atlasbridge.1", *(f"atlasbridge-{name}.1" for name in COMMANDS)}
    for name, text in pages.items():
        assert text.startswith(".TH "), name
        assert ".SH NAME" in text and ".SH SYNOPSIS" in text, name
    assert r"\-\-dry\-run" in pages["atlasbridge-uninstall.1"]
    assert ".SH SHIM ADD" in pages["atlasbridge-shim.1"]


def test_roff_takes_every_man_page() -> None:
    groff = shutil.which("groff")
    for name, text in man_pages():
        assert not re.search(r"^\.(?!TH|SH|nf|fi)", text, re.MULTILINE), name
        if groff:
            done = subprocess.run([groff, "-man", "-Tascii", "-ww", "-z"], input=text, capture_output=True, text=True)
            assert done.stderr == "", name


def test_the_list_of_parts_names_what_is_required_and_its_version() -> None:
    listed = sbom.render()
    assert listed["metadata"]["component"]["name"] == "atlasbridge-pty"
    names = {part["name"].lower() for part in listed["components"]}
    assert {"click", "pydantic", "httpx", "starlette", "uvicorn"} <= names
    assert all(part["purl"].startswith("pkg:pypi/") and part["version"] for part in listed["components"])


def test_the_packages_are_of_this_version() -> None:
    newest = (ROOT / "packages/debian/changelog").read_text("utf-8").splitlines()[0]
    assert newest.startswith(f"atlasbridge ({__version__}-")
    formula = (ROOT / "packages/homebrew/atlasbridge.rb").read_text("utf-8")
    assert "@SDIST_SHA256@" in formula and "hub" in formula


def test_whatever_we_need_is_a_package_of_debian() -> None:
    """A dependency that Debian has under another name, or as a program, is named in the overrides."""
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    names = {re.split(r"[<>=\[; ]", line)[0] for line in needed}
    overridden = {line.split()[0] for line in (ROOT / "packages/debian/py3dist-overrides").read_text().splitlines()}
    python_packages = {
        "click",
        "pydantic",
        "httpx",
        "starlette",
        "uvicorn",
        "segno",
        "h11",
    }  # python3-NAME in Debian 13
    assert names - overridden == python_packages


def test_ruby_takes_the_formula() -> None:
    formula = (ROOT / "packages/homebrew/atlasbridge.rb").read_text("utf-8")
    opened = re.findall(r"^\s*(?:class|def)\b|\bdo$", formula, re.MULTILINE)
    assert len(opened) == len(re.findall(r"^\s*end$", formula, re.MULTILINE))
    if ruby := shutil.which("ruby"):
        done = subprocess.run([ruby, "-wc", "-"], input=formula, capture_output=True, text=True)
        assert (done.returncode, done.stdout.strip()) == (0, "Syntax OK"), done.stderr


@pytest.mark.parametrize("name", ["hub", "fleet"])
def test_a_container_file_starts_a_command_that_exists_and_not_as_root(name: str) -> None:
    text = (ROOT / f"packages/container/Containerfile.{name}").read_text("utf-8").replace("\\\n", " ")
    steps = [line.partition(" ")[::2] for line in text.splitlines() if line and not line.startswith("#")]
    known = "FROM WORKDIR COPY ENV RUN USER EXPOSE VOLUME STOPSIGNAL HEALTHCHECK ENTRYPOINT CMD"
    assert {word for word, _ in steps} <= set(known.split())
    last = dict(steps)
    # as a number: Kubernetes takes no name for a user that is not root
    assert last["USER"] == "1000" and f"useradd --create-home --uid 1000 {name}" in text
    words = [word for part in ("ENTRYPOINT", "CMD") if part in last for word in json.loads(last[part])]
    assert words[0] == "atlasbridge" and words[1] in COMMANDS
    done = subprocess.run([*ATLASBRIDGE, *words[1:3], "--help"], capture_output=True, text=True, cwd=ROOT / "tests")
    assert done.returncode == 0, done.stderr
    for option in (word for word in words[3:] if word.startswith("--")):
        assert option in done.stdout


def test_the_unit_of_a_fleet_server_starts_a_command_that_exists() -> None:
    text = (ROOT / "packages/systemd/atlasbridge-fleet.service").read_text("utf-8")
    (started,) = re.findall(r"^ExecStart=/usr/bin/env atlasbridge (.*)$", text, re.MULTILINE)
    words = started.split()
    done = subprocess.run([*ATLASBRIDGE, *words[:2], "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and all(word in done.stdout for word in words if word.startswith("--"))
    if analyze := shutil.which("systemd-analyze"):
        checked = subprocess.run(
            [analyze, "verify", "packages/systemd/atlasbridge-fleet.service"], capture_output=True, text=True, cwd=ROOT
        )
        assert checked.returncode == 0, checked.stderr


def test_the_chart_of_a_fleet_server_gives_it_options_that_exist() -> None:
    text = "".join(path.read_text("utf-8") for path in (ROOT / "packages/helm/atlasbridge-fleet").rglob("*.yaml"))
    for name in ("serve", "migrate"):
        shown = subprocess.run([*ATLASBRIDGE, "fleet", name, "--help"], capture_output=True, text=True)
        known = set(re.findall(r"--[\w-]+", shown.stdout))
        part = text.partition("kind: Job")[2] if name == "migrate" else text.partition("kind: Job")[0]
        given = set(re.findall(r"(?:- |, )(--[\w-]+)", part)) if name == "serve" else {"--saved"}
        assert given and given <= known, given - known
    assert "ATLASBRIDGE_FLEET_DATABASE" in text and "ATLASBRIDGE_FLEET_URL" in text


CHARTS = {
    "plain": (),
    "with a file": ("--set-string", "config=[channels.telegram]\ntoken = 'env:BOT'", "--set", "migrate.saved=true"),
}


@pytest.mark.tools
@pytest.mark.parametrize("given", CHARTS.values(), ids=list(CHARTS))
def test_helm_and_kubernetes_take_the_chart(given: tuple[str, ...], tmp_path: Path) -> None:
    tools = Path(os.environ.get("ATLASBRIDGE_TOOLS", ROOT / ".venv/tools")) / "kubernetes/bin"
    if not tools.exists():
        pytest.skip("tools/install-extras installs helm and kubernetes-validate")
    words = ["packages/helm/atlasbridge-fleet", "--set", "url=https://fleet.example.org", *given]
    lint = subprocess.run([str(tools / "helm"), "lint", "--strict", *words], capture_output=True, text=True, cwd=ROOT)
    assert lint.returncode == 0, lint.stdout
    made = subprocess.run([str(tools / "helm"), "template", "it", *words], capture_output=True, text=True, cwd=ROOT)
    assert made.returncode == 0, made.stderr
    (tmp_path / "made.yaml").write_text(made.stdout)
    valid = subprocess.run(
        [str(tools / "kubernetes-validate"), "--strict", str(tmp_path / "made.yaml")], capture_output=True, text=True
    )
    assert valid.returncode == 0, valid.stdout + valid.stderr
    nameless = subprocess.run(
        [str(tools / "helm"), "template", "it", words[0]], capture_output=True, text=True, cwd=ROOT
    )
    assert nameless.returncode != 0 and "the address with https" in nameless.stderr


@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_a_wheel_is_built_the_same_twice_and_is_small(tmp_path: Path) -> None:
    digests = []
    for turn in ("first", "second"):
        words = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(tmp_path / turn), str(ROOT)]
        environ = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
        subprocess.run(words, check=True, env=environ, cwd=tmp_path)
        (wheel,) = (tmp_path / turn).glob("*.whl")
        digests.append(hashlib.sha256(wheel.read_bytes()).hexdigest())
    assert digests[0] == digests[1]
    assert wheel.stat().st_size < LARGEST_WHEEL


@pytest.mark.heavy
def test_the_source_is_packed_the_same_twice_and_builds_the_same_wheel(tmp_path: Path) -> None:
    """What a distribution gets: the wheel from the packed source is the wheel from the tree."""
    environ = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}

    def built(kind: str, source: Path, place: str) -> Path:
        words = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(tmp_path / place)]
        subprocess.run(words, check=True, env=environ, cwd=source, capture_output=True)
        (found,) = (tmp_path / place).iterdir()
        return found

    packed = built("sdist", ROOT, "first")
    assert packed.read_bytes() == built("sdist", ROOT, "second").read_bytes()
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    assert built("wheel", source, "from-source").read_bytes() == built("wheel", ROOT, "from-tree").read_bytes()


@pytest.mark.heavy
@pytest.mark.timeout(600)
@pytest.mark.skipif(
    not all(shutil.which(tool) for tool in ("dpkg-buildpackage", "dh_python3", "pybuild")), reason="no Debian tools"
)
def test_the_debian_package_has_the_command_its_pages_and_its_needs(tmp_path: Path) -> None:
    source = tmp_path / "atlasbridge"
    source.mkdir()
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout.split(b"\0")
    for name in filter(None, map(os.fsdecode, files)):
        if name.startswith(("src/", "tools/", "packages/debian/", "pyproject", "README", "LICENSE")):
            target = source / name.replace("packages/debian/", "debian/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target)
    # build tools of Debian 13: where the system's are older, those of this environment
    tools = Path(hatchling.__file__).parents[1]
    environ = {**os.environ, "PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "PYTHONPATH": str(tools)}
    done = subprocess.run(
        ["dpkg-buildpackage", "-b", "-us", "-uc", "-d"], cwd=source, env=environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (package,) = tmp_path.glob("*.deb")

    def asked(option: str) -> str:
        return subprocess.run(["dpkg-deb", option, package], check=True, capture_output=True, text=True).stdout

    inside = asked("-c")
    assert "./usr/bin/atlasbridge\n" in inside and "atlasbridge/channels/web/static/" in inside
    assert {f"/man1/atlasbridge-{name}.1.gz" in inside for name in COMMANDS} == {True}
    assert "shfmt" in asked("-I") and "shfmt-py" not in asked("-I")

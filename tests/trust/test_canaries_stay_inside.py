"""Canaries in command lines, files and headers: none of them comes out by a name, a file, an argument or a host."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from tests.support.fake_host import SECRET, FakeHost
from tests.support.hubs import hub_process
from tests.support.waiting import wait_for

from atlasbridge.channels.files import NotHanded, read_inside
from atlasbridge.integrations.caller_label import name_of_caller
from atlasbridge.web.guard import host_name

CANARY = "kanarienvogel"


@pytest.mark.parametrize(
    "words",
    [
        ["sh", "-c", f"MYSQL_PWD={CANARY}; atlasbridge ask Deploy?"],
        ["bash", "-ec", f"curl -u me:{CANARY} x"],
        ["bash", "-c", f"/tmp/{CANARY}"],
        ["bash", "-euo", "pipefail", "-c", CANARY],
        ["/usr/bin/python3", "-c", f"password = '{CANARY}'"],
        ["python3", "-Ic", CANARY],
        ["perl", "-e", CANARY],
        ["perl", "-ne", CANARY],
        ["node", "-pe", CANARY],
        ["ruby", "-e", CANARY],
        ["bash", f"TOKEN={CANARY} run"],
        ["mytool", "--password", CANARY],
        ["fish", "-c", CANARY],
        ["-bash", "-c", CANARY],
    ],
)
def test_a_command_line_is_never_a_name(words: list[str]) -> None:
    assert CANARY not in name_of_caller(words)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["bash", "deploy.sh", CANARY], "deploy.sh"),
        (["bash", "-euo", "pipefail", "scripts/deploy.sh"], "deploy.sh"),
        (["/usr/bin/python3", "-u", "/srv/release.py", "--token", CANARY], "release.py"),
        (["make", "deploy", f"KEY={CANARY}"], "make"),
        (["bash"], ""),
        (["-zsh"], ""),
        (["bash", "/dev/fd/63", CANARY], ""),  # bash <(curl …)
        (["bash", "/proc/self/fd/3"], ""),
        (["python3", "-m", "deploy"], "python3"),
        ([], ""),
    ],
)
def test_a_script_is_named_by_its_file_alone(words: list[str], name: str) -> None:
    assert name_of_caller(words) == name


def test_a_password_in_a_shells_source_is_in_no_record_of_the_hub() -> None:
    with hub_process() as hub:
        command = shlex.join(hub.command("ask", "Deploy?", "--ttl", "60"))
        script = f"MYSQL_PWD={CANARY}; export NOTHING=1; {command}; true"
        with subprocess.Popen(["sh", "-c", script], env=hub.environ, stdout=subprocess.DEVNULL) as asking:
            wait_for(hub.is_asked)
            told = str(hub.ask("sessions", all=True)) + str(hub.ask("prompts")) + str(hub.ask("audit"))
            stored = b"".join(path.read_bytes() for path in hub.home.root.glob("atlasbridge.db*"))
            (prompt,) = hub.ask("prompts")["prompts"]
            assert hub.cli("reply", prompt["prompt_id"], "n").returncode == 0
            asking.wait()
        assert CANARY not in told and CANARY.encode() not in stored


@pytest.mark.parametrize(
    "path",
    [
        *(
            ".vault-token",
            ".docker/config.json",
            "passwords.kdbx",
            "atlasbridge.db",
            "atlasbridge.db-wal",
            ".aws/credentials",
        ),
        *(".kube/config", ".ssh/known_hosts", ".config/gh/hosts.yml", ".bash_history", ".pgpass", ".my.cnf", ".netrc"),
        *(".env", ".env.local", "prod.env", "server.key", "id_ed25519", "keystore.jks", "cert.p12", "vpn.ovpn"),
        *("terraform.tfstate", "secrets.yaml", "credentials.json", "db-password.txt", "api_token.txt", "backup.sqlite"),
        *(".git/config", ".terraform/x", ".password-store/a.gpg", "audit.log", "session.har", "kubeconfig", ".pypirc"),
    ],
)
def test_what_holds_secrets_by_its_kind_does_not_leave(path: str, tmp_path: Path) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(CANARY)
    with pytest.raises(NotHanded):
        read_inside(str(tmp_path), path)
    with pytest.raises(NotHanded):
        read_inside(str(tmp_path), path.upper())


@pytest.mark.parametrize(
    "content",
    [
        b"SQLite format 3\0" + CANARY.encode(),
        b"\x03\xd9\xa2\x9a" + CANARY.encode(),
        b"\xfe\xed\xfe\xed" + CANARY.encode(),
        "token = ghp_abcdefghijklmnopqrstuvwxyz0123456789".encode("utf-16"),
    ],
)
def test_what_holds_secrets_by_its_content_does_not_leave_under_any_name(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(content)
    with pytest.raises(NotHanded):
        read_inside(str(tmp_path), "picture.png")


@pytest.mark.parametrize("path", ["README.md", "src/main.py", ".gitignore", ".github/workflows/ci.yml", "chart.png"])
def test_what_people_ask_for_leaves(path: str, tmp_path: Path) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"hello")
    assert read_inside(str(tmp_path), path)[1] == b"hello"


def test_a_secret_on_the_command_line_is_not_taken_and_standard_input_is() -> None:
    with hub_process() as hub, FakeHost(hub.home) as host:
        prompt_id = host.raise_prompt(SECRET)
        wait_for(hub.is_asked)
        for words in ((CANARY,), ("--keys", CANARY), ("--text", CANARY), (CANARY, "--also", prompt_id[:8])):
            done = hub.cli("reply", prompt_id, *words)
            assert done.returncode == 3 and f"reply {prompt_id[:8]} -" in done.stderr, done
        assert hub.is_asked()
        replying = subprocess.Popen(
            hub.command("reply", prompt_id, "-"),
            env=hub.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert replying.stdin is not None
        replying.stdin.write(CANARY + "\n")
        replying.stdin.close()
        assert host.answer_typing()["answer"]["value"] == CANARY
        assert replying.wait() == 0
        assert replying.stdout is not None
        replying.stdout.close()


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("localhost", "localhost"),
        ("LocalHost:8765", "localhost"),
        ("[::1]:80", "::1"),
        ("[::1]", "::1"),
        ("127.0.0.1:1", "127.0.0.1"),
        ("my_box.lan:8443", "my_box.lan"),
        *((host, "") for host in ("[localhost]evil.com", "127.0.0.1:80@evil", "localhost:80:90", "localhost:", "a b")),
        *((host, "") for host in ("localhost/evil", "[::1]evil", "[::1]:x", "localhost:99999", "user@localhost", "")),
        *((host, "") for host in (" localhost", "localhost\n", "localhost.", "[::1", "::1", "localhost#", "lo?cal")),
        *(
            (host, "")
            for host in ("localhost,evil", "localhost;evil", "[localhost]", "[127.0.0.1%25evil]", ".localhost")
        ),
    ],
)
def test_a_host_is_a_name_and_a_port_and_nothing_else(host: str, name: str) -> None:
    assert host_name(host) == name

"""A secret that was typed leaves by no way out: prompt, screen, log, store, report, recording, argument."""

from __future__ import annotations

import json
import os
import select
import stat
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.arena import Arena, arena
from tests.support.session_fakes import PROMPT
from tests.support.terminal import SCRIPT
from tests.support.waiting import wait_for

from atlasbridge.cli.doctor import collect
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.home import Home
from atlasbridge.core.process import own_python
from atlasbridge.core.prompt.model import Subject, SubjectKind
from atlasbridge.core.prompt.redact import GONE, redact_prompt, redact_text, typed_text, with_secret
from atlasbridge.core.values import replace
from atlasbridge.web.site import Reports
from ptypool.process import spawn_process

KEY, PIN, PHRASE = "plainlookingkeyvalue", "4711", "correct horse battery staple"
ARGUMENT = "argv-canary-81c2f0"
TOOL = """
import sys
key = input("API key: ")
pin = input("PIN: ")
phrase = input("Recovery phrase: ")
print("you said", key, "and", pin, "and", phrase)
print("\\x1b]0;" + key + "\\x07", end="")
answer = input("Deploy with " + key + "? (y/n) ")
open({done!r}, "w").write("|".join((key, pin, phrase, answer)))
input("Anything else? ")
"""


@pytest.fixture
def place() -> Iterator[Arena]:
    with arena('[channels.web]\nenabled = false\n[hub]\nlog_level = "debug"\n') as made:
        made.start_hub()
        yield made


def answered(place: Arena, fighter: object, old: str, value: str, secret: bool) -> str:
    prompt = wait_for(lambda: _other(fighter.open_prompt(), old), "the next question")  # type: ignore[attr-defined]
    assert prompt["constraints"]["secret"] is secret, prompt
    answer = place.reply(prompt["prompt_id"], value)
    assert answer is not None and answer["ok"], answer
    return str(prompt["prompt_id"])


def _other(prompt: dict[str, Any] | None, old: str) -> dict[str, Any] | None:
    return prompt if prompt and prompt["prompt_id"] != old else None


def test_an_echoed_secret_is_found_nowhere_afterwards(place: Arena, tmp_path: Path) -> None:
    done, script = tmp_path / "done", tmp_path / "tool.py"
    script.write_text(TOOL.format(done=str(done)))
    fighter = place.start_session((sys.executable, str(script), "--token", ARGUMENT))
    old = answered(place, fighter, "", KEY, secret=True)
    old = answered(place, fighter, old, PIN, secret=True)
    old = answered(place, fighter, old, PHRASE, secret=True)
    question = wait_for(lambda: _other(fighter.open_prompt(), old), "the question")
    screens = [place.ask("screen", session_id=fighter.session_id, styled=styled) for styled in (False, True)]
    assert GONE in question["excerpt"] and question["excerpt"].startswith(("Deploy with", "you said"))
    assert all("you said" in str(screen) for screen in screens)
    old = answered(place, fighter, old, "y", secret=False)
    wait_for(lambda: _other(fighter.open_prompt(), old), "the last question")
    assert done.read_text() == f"{KEY}|{PIN}|{PHRASE}|y", "the secrets themselves must have arrived"
    told = [str(screens), str(question), str(place.ask("history")), str(place.entries()), str(place.ask("sessions"))]
    told += [str(place.ask("prompts")), *_commands(place)]
    for canary in (KEY, "horse", ARGUMENT):
        for text in told:
            assert canary not in text, f"{canary} in {text[:400]}"
        for path in place.home.root.rglob("*"):
            assert not path.is_file() or canary.encode() not in path.read_bytes(), f"{canary} is in {path}"
    assert f" {PIN} " not in str(screens) + str(question)
    place.ask("kill", session_id=fighter.session_id, force=True)


def _commands(place: Arena) -> list[str]:
    told = []
    bundle = place.home.root / "bundle.tar.gz"
    for words in (
        ["events", "--json"],
        ["ps", "--json"],
        ["logs"],
        ["audit", "show"],
        ["debug", "bundle", "-o", bundle],
    ):
        done = subprocess.run(
            own_python("atlasbridge", *map(str, words)), env=place.environ, capture_output=True, text=True
        )
        assert done.returncode == 0, (words, done.stderr)
        told.append(done.stdout + done.stderr)
    with tarfile.open(bundle) as archive:
        told += [(archive.extractfile(member) or sys.stdin.buffer).read().decode() for member in archive.getmembers()]
    return told


def test_a_secret_typed_at_the_keyboard_is_hidden_too(place: Arena, tmp_path: Path) -> None:
    script = tmp_path / "tool.py"
    script.write_text(
        "import getpass\nkey = getpass.getpass('Password: ')\nprint('it was', key)\ninput('Go on with ' + key + '? ')\n"
    )
    child = spawn_process(
        own_python("atlasbridge", "run", "--", sys.executable, str(script)), env=place.environ, size=(24, 80)
    )
    try:
        prompt = wait_for(lambda: (_drain(child.master_fd), _first(place))[1], "the password prompt")
        assert prompt["constraints"]["secret"]
        for key in b"swordfisb\x7fh\r":
            os.write(child.master_fd, bytes([key]))
        question = wait_for(
            lambda: (_drain(child.master_fd), _other(_first(place), prompt["prompt_id"]))[1], "the question"
        )
        assert "swordfish" not in str(question) and GONE in question["excerpt"]
        os.write(child.master_fd, b"\r")
    finally:
        while os.waitpid(child.pid, os.WNOHANG)[0] == 0:
            _drain(child.master_fd)
        os.close(child.master_fd)


def _first(place: Arena) -> dict[str, Any] | None:
    return next(iter(place.ask("prompts")["prompts"]), None)


def _drain(fd: int, wait_s: float = 0.02) -> str:
    """Read what is there, so that the program can go on; says nothing."""
    try:
        if select.select([fd], [], [], wait_s)[0]:
            os.read(fd, 65536)
    except OSError:
        pass
    return ""


def test_what_a_host_tells_of_a_prompt_has_lost_its_secrets() -> None:
    subject = Subject(SubjectKind.COMMAND, "deploy open sesame1", complete=True, shown="deploy open sesame1")
    prompt = replace(
        PROMPT,
        excerpt="use open sesame1?",
        screen="a\nopen sesame1",
        constraints={"default": "sk-0123456789abcdef01234", "max_length": 9},
        subject=subject,
        raw=b"\x1b[1mopen sesame1\xff",
    )
    told = redact_prompt(prompt, ("open sesame1",))
    assert "sesame1" not in f"{told.excerpt}{told.screen}{told.constraints}{told.raw!r}"
    assert told.constraints["max_length"] == 9 and told.raw.endswith(b"\xff")
    assert told.subject is not None and told.subject.text == subject.text and not told.subject.certain


def test_a_commands_arguments_are_told_without_their_secrets() -> None:
    words = ("deploy", "--token", ARGUMENT, "--password=hunter2", "-v", "https://me:pw12@host/x", "plain")
    shown = ("deploy", "--token", GONE, f"--password={GONE}", "-v", f"https://me:{GONE}@host/x", "plain")
    assert redact_text(words) == shown


def test_what_keys_leave_in_a_line_is_known() -> None:
    assert typed_text(b"abx\x7fc\x1b[D\x1b[C\r") == "abc"
    assert typed_text(b"old\x15n\xc3\xa4\x7few\n") == "new"
    assert typed_text(b"two words\x17x\r") == "two x"


def test_only_what_can_be_told_from_other_words_is_remembered() -> None:
    secrets: tuple[str, ...] = ()
    for value in ("y", "12", "yes", "", "  ", "4711", "hunter2", "hunter2", "swordfish"):
        secrets = with_secret(secrets, value)
    assert secrets == ("4711", "hunter2", "swordfish")
    for number in range(100):
        secrets = with_secret(secrets, f"secret-{number}")
    assert len(secrets) == 64 and secrets[-1] == "secret-99"


def test_a_report_is_written_without_secrets(tmp_path: Path) -> None:
    detail = {"screen": {"lines": ["password=hunter2", "\x9b31m"], "styled": [[["token=abc123", None, None, 0]]]}}
    path = Reports(tmp_path, SystemClock()).write("missed", "s", "p", "my key is sk-0123456789abcdef0123", detail)
    assert path is not None
    text = path.read_text()
    assert not any(secret in text for secret in ("hunter2", "abc123", "sk-0123", "\x9b"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_bundle_holds_no_arguments_of_launchers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    home.config.write_text('[[launchers]]\nname = "x"\ncommand = ["/opt/bin/deploy", "--with", "canary-argument"]\n')
    home.config.chmod(0o600)
    monkeypatch.setenv("ATLASBRIDGE_HOME", str(home.root))
    members = collect(home)
    assert (
        "canary" not in str(members) and "deploy" in members["config.json"] and "2 more words" in members["config.json"]
    )


def record(tmp_path: Path, program: str, typed: list[tuple[str, bytes]], *options: str) -> tuple[Path, list[list[Any]]]:
    """Run `lab record` on a terminal of its own; each answer is typed once its question stands there."""
    path = tmp_path / "made.cast"
    path.write_text("")
    path.chmod(0o644)
    words = own_python("atlasbridge", "lab", "record", "-o", str(path), *options, "--", sys.executable, "-c", program)
    child = spawn_process(words, size=(24, 80), env={**os.environ, "ATLASBRIDGE_HOME": str(tmp_path / "home")})
    seen = ""
    while True:
        try:
            seen += os.read(child.master_fd, 65536).decode(errors="replace")
        except OSError:
            break
        if typed and typed[0][0] in seen:
            os.write(child.master_fd, typed.pop(0)[1])
    assert os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1]) == 0, seen
    os.close(child.master_fd)
    return path, [json.loads(line) for line in path.read_text().splitlines()]


ASKING = (
    "import getpass\nname = input('Name: ')\nkey = getpass.getpass('Password: ')\n"
    "print('hello', name, 'with', key)\nprint('token=abcdef0123456789')\ninput('Done? ')\n"
)


def test_a_recording_holds_no_key_that_was_typed_unseen(tmp_path: Path) -> None:
    typed = [("Name: ", b"alice\r"), ("Password: ", b"swordfish\r"), ("Done? ", b"\r")]
    path, events = record(tmp_path, ASKING, typed)
    text = path.read_text()
    assert "swordfish" not in text and "abcdef0123456789" not in text
    assert "".join(event[2] for event in events[1:] if event[1] == "i") == "alice\r" + "•" * 9 + "\r\r"
    written = "".join(event[2] for event in events[1:] if event[1] == "o")
    assert "hello alice with •••••••••" in written and f"token={GONE}••••••" in written
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    times = [event[0] for event in events[1:]]
    assert times == sorted(times)


def test_a_verbatim_recording_keeps_the_output_but_no_unseen_key(tmp_path: Path) -> None:
    typed = [("Name: ", b"alice\r"), ("Password: ", b"sw0rdfish\r"), ("Done? ", b"\r")]
    path, events = record(tmp_path, ASKING, typed, "--verbatim")
    assert "token=abcdef0123456789" in path.read_text()
    assert "sw0rdfish" not in "".join(event[2] for event in events[1:] if event[1] == "i")


def test_a_private_settings_file_never_becomes_an_argument(tmp_path: Path) -> None:
    """A program called `claude` that shows its arguments and the mode and content of the file it was given."""
    settings = tmp_path / "own.json"
    settings.write_text(json.dumps({"env": {"X": "canary-in-settings"}, "model": "opus"}))
    claude = tmp_path / "claude"
    claude.write_text(
        SCRIPT + "import json, os, sys\npath = sys.argv[sys.argv.index('--settings') + 1]\n"
        f"found = dict(argv=sys.argv, path=path, mode=oct(os.stat(path).st_mode), text=open(path).read())\n"
        f"json.dump(found, open({str(tmp_path / 'found')!r}, 'w'))\n"
    )
    claude.chmod(0o755)
    environ = {**os.environ, "ATLASBRIDGE_HOME": str(tmp_path / "h")}
    words = own_python("atlasbridge", "run", "--no-hub", "--", str(claude), "--settings", str(settings), "hello")
    done = subprocess.run(words, env=environ, capture_output=True, text=True)
    found = json.loads((tmp_path / "found").read_text())
    assert "canary-in-settings" not in str(found["argv"]) and found["argv"][-1] == "hello", done.stderr
    merged = json.loads(found["text"])
    assert merged["env"] == {"X": "canary-in-settings"} and "PermissionRequest" in merged["hooks"]
    assert found["mode"].endswith("600") and found["path"].startswith(str(tmp_path / "h"))
    wait_for(lambda: not Path(found["path"]).exists(), "the file to be removed")


def test_a_question_at_a_open_question_and_its_answer_pass_the_redactor(place: Arena) -> None:
    """What no session's host has seen is redacted by the hub: question, answer, receipt, log."""
    key = "sk-0123456789abcdef0123"
    words = own_python("atlasbridge", "ask", f"Use {key}?", "--text")
    caller = subprocess.Popen(words, env=place.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        prompt = wait_for(lambda: _first(place), "the question")
        assert key not in str(prompt) and GONE in prompt["excerpt"]
        answer = place.reply(prompt["prompt_id"], f"rather token=hunter2 with {key}")
        assert answer is not None and answer["ok"], answer
        out, _ = caller.communicate()
        assert out.strip() == f"rather token=hunter2 with {key}", "the caller gets the answer itself"
    finally:
        caller.kill()
        caller.wait()
    told = f"{answer}{place.ask('history')}{place.entries()}"
    assert key not in told and "hunter2" not in told and GONE in told

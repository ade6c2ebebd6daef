"""`atlasbridge policy` and `atlasbridge grants` against a real hub, and the how-to's own commands."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.test_hub_rules import asking
from tests.support.fake_host import FakeHost
from tests.support.hubs import HubProcess, hub_process
from tests.support.waiting import wait_for

HOWTO = Path(__file__).parents[2] / "docs" / "howto" / "policy.md"
RULE = '[[rule]]\nname = "tests"\nverdict = "allow"\ncommand = ["npm", "run", "test*", "**"]\n'


@pytest.fixture
def hub() -> Iterator[HubProcess]:
    with hub_process() as made:
        yield made


def answer(hub: HubProcess, host: FakeHost, text: str, value: str = "1") -> str:
    """A prompt that a person answers from this machine."""
    prompt_id = host.raise_prompt(asking(text))
    wait_for(hub.is_asked)
    replying = hub.popen("reply", prompt_id, value)
    host.answer_typing()
    assert replying.wait() == 0
    replying.communicate()
    wait_for(lambda: not hub.is_asked())
    return prompt_id


def test_the_first_rule_as_the_howto_tells_it(hub: HubProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeHost(hub.home, tool="claude") as host:
        for _ in range(3):
            answer(hub, host, "npm run test")
        answer(hub, host, "rm x")
        answer(hub, host, "rm y")
        section = HOWTO.read_text(encoding="utf-8").split("## What a rule says")[0]
        hub.environ["EDITOR"] = "true"
        said = {}
        for line in re.findall(r"^\$ atlasbridge (.+)$", section, re.M):
            done = hub.cli(*shlex.split(line))
            assert done.returncode == 0, (line, done.stderr)
            said[line] = done.stdout
        assert said["policy suggest"].strip() in section
        assert "rm" not in said["policy suggest"]
        assert "3 of 5 would have been answered by a rule" in said["policy test --since 7d"]
        assert said['policy explain --command "npm run test && curl example.com"'].startswith("Asked: ")
        prompt_id = host.raise_prompt(asking("npm run test --silent"))
        assert host.answer_typing()["answer"] == {"kind": "choice", "value": "1"}
        entries = hub.ask("audit", prompt_id=prompt_id, event="REPLY_RECEIVED")["entries"]
        assert entries[0]["source"].startswith("rule:")


def test_explain_says_verdict_rule_and_reason_as_json(hub: HubProcess, tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text(RULE)
    found = hub.json("policy", "explain", "--command", "npm run test:unit", "--policy", str(file))
    assert (found["verdict"], found["rule"]) == ("allow", "tests") and found["reason"]
    found = hub.json("policy", "explain", "--command", "npm run test; reboot", "--policy", str(file))
    assert (found["verdict"], found["rule"]) == ("ask", "") and "reboot" in found["reason"]


def test_a_grammar_is_found_by_the_beginning_of_a_command(hub: HubProcess) -> None:
    assert hub.cli("policy", "grammar", "npm", "run", "test").stdout.startswith("`npm run` takes ")
    assert hub.cli("policy", "grammar", "nonesuch", "run").returncode == 1


def test_explain_knows_files_and_pages(hub: HubProcess, tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text(
        '[[rule]]\nname = "docs"\nverdict = "allow"\npath = "docs/**"\n'
        '[[rule]]\nname = "pages"\nverdict = "deny"\nhost = "*.example.com"\n'
    )
    for option, text, verdict in (
        ("--path", "docs/guide.md", "allow"),
        ("--path", "docs/../src/main.py", "ask"),
        ("--url", "https://www.example.com/a", "deny"),
        ("--url", "https://example.org/", "ask"),
    ):
        assert hub.json("policy", "explain", option, text, "--policy", str(file))["verdict"] == verdict, text
    done = hub.cli("policy", "explain", "--path", "a", "--url", "b")
    assert done.returncode == 2 and "give one of" in done.stderr


def test_explain_a_prompt(hub: HubProcess) -> None:
    (hub.home.root / "policy.toml").write_text(RULE.replace("allow", "deny"))
    with FakeHost(hub.home, tool="claude") as host:
        prompt_id = answer(hub, host, "npm run test")
        assert hub.json("policy", "explain", prompt_id)["verdict"] == "deny"
        rows = hub.json("policy", "test", "--since", "1h")
        assert [(row["verdict"], row["against"]) for row in rows] == [("deny", True)]


def test_a_wrong_file_is_said_with_its_line_and_the_old_rules_stand(hub: HubProcess) -> None:
    path = hub.home.root / "policy.toml"
    path.write_text(RULE)
    assert hub.cli("hub", "reload").returncode == 0
    path.write_text(RULE + "colour = 3\n")
    done = hub.cli("hub", "reload")
    assert done.returncode == 2 and "policy.toml:5: rule 'tests': 'colour' is not known" in done.stderr
    assert hub.cli("policy", "check").returncode == 2
    wait_for(lambda: hub.ask("rules.overview")["rules"] != [])
    assert [rule["name"] for rule in hub.ask("rules.overview")["rules"]] == ["tests"]


def test_a_hub_does_not_start_with_rules_that_are_wrong() -> None:
    with hub_process(start=False) as hub:
        (hub.home.root / "policy.toml").write_text("[[rule]]\n")
        done = hub.cli("hub", "start")
        assert done.returncode != 0 and "policy.toml:1:" in done.stderr


def test_edit_keeps_the_old_rules_when_the_draft_is_wrong(hub: HubProcess, tmp_path: Path) -> None:
    path = hub.home.root / "policy.toml"
    path.write_text(RULE)
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\necho 'nonsense' > \"$1\"\n")
    editor.chmod(0o755)
    hub.environ["EDITOR"] = shlex.quote(str(editor))
    done = hub.cli("policy", "edit")
    assert done.returncode == 2 and "the old rules still apply" in done.stderr
    assert path.read_text() == RULE


def test_grants_are_added_listed_used_and_revoked(hub: HubProcess) -> None:
    with FakeHost(hub.home, tool="claude") as host:
        first = host.raise_prompt(asking("npm run test"))
        wait_for(hub.is_asked)
        told = hub.cli("grants", "add", first, "--for", "30m", "--preview").stdout.replace("would grant", "granted")
        assert told.strip() in HOWTO.read_text(encoding="utf-8")
        prompt_id = host.raise_prompt(asking("cargo test --all"))
        wait_for(lambda: hub.ask("prompts")["prompts"][0]["prompt_id"] == prompt_id)
        preview = hub.json("grants", "add", prompt_id, "--for", "30m", "--preview")
        assert preview["words"].startswith("`cargo test` with names of tests and these options: -q")
        assert preview["words"].endswith("for 30 minutes in this session")
        assert hub.json("grants", "list") == []
        made = hub.json("grants", "add", prompt_id, "--for", "30m", "--times", "5")
        assert host.answer_typing()["answer"] == {"kind": "choice", "value": "1"}
        (listed,) = hub.json("grants", "list")
        assert listed["uses_left"] == 4 and 0 < listed["seconds_left"] <= 1800
        assert "cargo test" in hub.cli("grants", "list").stdout
        host.raise_prompt(asking("cargo test -p x"))
        host.answer_typing()
        assert hub.json("grants", "revoke", made["grant_id"][:8])["ended"] == [made["grant_id"]]
        host.raise_prompt(asking("cargo test -p y"))
        wait_for(hub.is_asked)
        assert hub.cli("grants", "revoke", "ffffffff").returncode == 1


def test_what_cannot_be_granted_says_why(hub: HubProcess) -> None:
    with FakeHost(hub.home, tool="claude") as host:
        prompt_id = host.raise_prompt(asking("ls $(x)"))
        wait_for(hub.is_asked)
        done = hub.cli("grants", "add", prompt_id, "--times", "2", "--json")
        assert done.returncode == 3
        assert json.loads(done.stdout)["reason"] == "cannot_grant"


def test_grants_survive_the_hub_but_not_another_use(hub: HubProcess) -> None:
    with FakeHost(hub.home, tool="claude") as host:
        prompt_id = host.raise_prompt(asking("cargo test"))
        wait_for(hub.is_asked)
        hub.json("grants", "add", prompt_id, "--times", "1")
        host.answer_typing()
        hub.kill_9()
        hub.start()
        host.reconnect()
        assert hub.json("grants", "list") == []
        host.raise_prompt(asking("cargo test x"))
        wait_for(hub.is_asked)

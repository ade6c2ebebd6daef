"""`atlasbridge reply` as other programs use it: exit status, reason, sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.support.fake_host import FREE_TEXT, SECRET, UNKNOWN, FakeHost
from tests.support.hubs import HubProcess, hub_process
from tests.support.waiting import wait_for

from atlasbridge.core.prompt.keys import Step
from atlasbridge.core.prompt.model import Choice, Prompt, PromptType

MENU = Prompt(
    type=PromptType.TYPE_MULTIPLE_CHOICE,
    score=0.9,
    excerpt="Which one?",
    choices=(
        Choice("1", "Yes", (Step(b"1"),)),
        Choice("2", "No, tell me", (Step(b"2"),), refuses=True),
    ),
    safe_default="2",
    digest="menu",
)


@pytest.fixture(scope="module")
def hub() -> Iterator[HubProcess]:
    with hub_process() as running:
        yield running


@pytest.fixture
def host(hub: HubProcess) -> Iterator[FakeHost]:
    with FakeHost(hub.home) as connected:
        yield connected
        connected.end()
        wait_for(lambda: hub.ask("sessions")["sessions"] == [])


def ask(hub: HubProcess, host: FakeHost, prompt: Prompt | None = None) -> str:
    prompt_id = host.raise_prompt(prompt) if prompt else host.raise_prompt()
    wait_for(lambda: any(item["prompt_id"] == prompt_id for item in hub.ask("prompts")["prompts"]))
    return prompt_id


def test_a_typed_reply_exits_0_with_a_short_id(hub: HubProcess, host: FakeHost) -> None:
    prompt_id = ask(hub, host)
    replying = hub.popen("reply", prompt_id[:8], "y", "--json")
    assert host.answer_typing()["answer"]["kind"] == "yes"
    out, _ = replying.communicate()
    told = json.loads(out)
    assert replying.returncode == 0
    assert told.pop("at") and told.pop("audit_head")
    assert told == {
        "ok": True,
        "stage": "typed",
        "message": 'Sent "y" to bash.',
        "answer": "y",
        "by": "cli:local",
        "from": "this machine",
    }
    again = hub.cli("reply", prompt_id, "y", "--json")
    assert again.returncode == 3
    assert json.loads(again.stdout)["reason"] == "not_open"


def test_a_word_that_is_no_choice_is_refused_with_the_choices(hub: HubProcess, host: FakeHost) -> None:
    prompt_id = ask(hub, host, MENU)
    refused = hub.cli("reply", prompt_id, "perhaps")
    assert refused.returncode == 3
    assert refused.stderr.startswith("Refused: ") and "Yes" in refused.stderr


def test_a_session_that_asks_nothing_is_named_as_such(hub: HubProcess, host: FakeHost) -> None:
    wait_for(lambda: hub.ask("sessions")["sessions"])
    for words in (("reply", "bash", "y"), ("reply", "bash", "--again")):
        refused = hub.cli(*words)
        assert refused.returncode == 3 and refused.stderr.startswith("Refused: bash asks nothing now.")
    assert "There is no open prompt 'nosuch'" in hub.cli("reply", "nosuch", "y").stderr


def test_a_question_that_is_not_asked_now_says_how_to_ask_it_again(hub: HubProcess, host: FakeHost) -> None:
    prompt_id = ask(hub, host, MENU)
    assert hub.cli("reply", prompt_id, "leave").returncode == 0
    refused = hub.cli("reply", "bash", "1")
    assert refused.returncode == 3 and "atlasbridge reply bash --again" in refused.stderr


@pytest.mark.parametrize(("said", "value"), [("1", "1"), ("no, tell me", "2"), ("default", "2")])
def test_a_choice_is_named_by_number_label_or_default(hub: HubProcess, host: FakeHost, said: str, value: str) -> None:
    prompt_id = ask(hub, host, MENU)
    replying = hub.popen("reply", prompt_id, said)
    assert host.answer_typing()["answer"] == {"kind": "choice", "value": value}
    replying.communicate()
    assert replying.returncode == 0


def test_text_can_be_forced(hub: HubProcess, host: FakeHost) -> None:
    prompt_id = ask(hub, host, FREE_TEXT)
    replying = hub.popen("reply", prompt_id, "default", "--text")
    assert host.answer_typing()["answer"] == {"kind": "text", "value": "default"}
    replying.communicate()


def test_a_secret_comes_from_standard_input_without_its_newline(hub: HubProcess, host: FakeHost) -> None:
    prompt_id = ask(hub, host, SECRET)
    import subprocess

    replying = subprocess.Popen(
        hub.command("reply", prompt_id, "-"), env=hub.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert replying.stdin is not None and replying.stdout is not None
    replying.stdin.write("  two words \n")
    replying.stdin.close()
    assert host.answer_typing()["answer"]["value"] == "  two words "
    assert replying.wait() == 0
    replying.stdout.close()


def test_keys_are_typed_as_they_are(hub: HubProcess, host: FakeHost) -> None:
    prompt_id = ask(hub, host, UNKNOWN)
    replying = hub.popen("reply", prompt_id, "--keys", "\\x1b")
    assert host.answer_typing()["answer"]["kind"] == "keys"
    replying.communicate()
    assert replying.returncode == 0


def test_unknown_prompts_are_refused(hub: HubProcess, host: FakeHost) -> None:
    refused = hub.cli("reply", "ffffffff", "y", "--json")
    assert refused.returncode == 3 and json.loads(refused.stdout)["reason"] == "unknown_prompt"


def test_neither_value_nor_keys_is_a_usage_error(hub: HubProcess) -> None:
    done = hub.cli("reply", "ffffffff")
    assert done.returncode == 2 and done.stderr.startswith("atlasbridge: no answer was given for 'ffffffff'")


def test_without_a_hub_the_exit_status_is_1_with_a_hint() -> None:
    with hub_process(start=False) as hub:
        done = hub.cli("reply", "ffffffff", "y")
        assert done.returncode == 1
        assert done.stderr.splitlines() == [
            "atlasbridge: the hub is not running",
            "  start it with: atlasbridge hub start",
        ]

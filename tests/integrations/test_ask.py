"""`atlasbridge ask` from a script: its output and its exit status are the answer, whatever dies meanwhile."""

from __future__ import annotations

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.integrations.conftest import HubApi


@pytest.mark.parametrize(("value", "printed", "status"), [("y", "yes\n", 0), ("n", "no\n", 1)])
def test_yes_and_no_are_printed_and_are_the_exit_status(hub_api: HubApi, value: str, printed: str, status: int) -> None:
    asking = hub_api.hub.popen("ask", "Deploy to production?")
    prompt = hub_api.answer(value)
    out, _ = asking.communicate()
    assert (out, asking.returncode) == (printed, status)
    assert prompt["type"] == "yes_no" and prompt["subject"]["text"] == "Deploy to production?"


def test_a_choice_is_printed_by_its_label(hub_api: HubApi) -> None:
    asking = hub_api.hub.popen(
        "ask", "Where to?", "--choice", "staging", "--choice", "production", "--choice", "Cancel"
    )
    hub_api.answer("production")
    assert asking.communicate()[0] == "production\n" and asking.returncode == 0


def test_who_answers_reads_that_it_was_given_for_nothing_is_typed_here(hub_api: HubApi) -> None:
    asking = hub_api.hub.popen(
        "ask", "Where to?", "--choice", "staging", "--choice", "production", "--label", "nightly"
    )
    prompt = hub_api.next()
    assert hub_api.reply(prompt["prompt_id"], "production").startswith('Sent "2. production" to nightly')
    assert asking.communicate()[0] == "production\n"


def test_a_refusing_choice_is_a_no(hub_api: HubApi) -> None:
    asking = hub_api.hub.popen("ask", "Where to?", "--choice", "staging", "--choice", "Cancel")
    hub_api.answer("cancel")  # a choice of that name comes before the command of that name
    assert asking.communicate()[0] == "Cancel\n" and asking.returncode == 1


def test_words_come_back_as_they_were_written(hub_api: HubApi) -> None:
    asking = hub_api.hub.popen("ask", "Release note?", "--text", "--json")
    hub_api.answer("faster | better", as_text=True)
    answer = json.loads(asking.communicate()[0])
    assert answer == {"outcome": "answered", "answer": "faster | better", "by": "cli:local"}


def test_a_secret_is_handed_over_and_kept_nowhere(hub_api: HubApi) -> None:
    asking = hub_api.hub.popen("ask", "Token?", "--secret")
    hub_api.answer("hunter2-hunter2", as_text=True)
    assert asking.communicate()[0] == "hunter2-hunter2\n"
    assert "hunter2" not in json.dumps(hub_api.audit())
    kept = b"".join(path.read_bytes() for path in hub_api.hub.home.root.rglob("*") if path.is_file())
    assert b"hunter2" not in kept


@pytest.mark.parametrize("ttl", ["0.5s", "0.5"])
def test_nobody_answered_in_time_is_neither_yes_nor_no(hub_api: HubApi, ttl: str) -> None:
    done = hub_api.hub.cli("ask", "Anybody?", "--ttl", ttl)
    assert (done.stdout, done.returncode) == ("", 4)


def test_the_default_that_refuses_is_a_no(hub_api: HubApi) -> None:
    done = hub_api.hub.cli("ask", "Anybody?", "--ttl", "0.5s", "--default", "no")
    assert (done.stdout, done.returncode) == ("no\n", 1)


def test_a_default_that_agrees_is_refused_before_anybody_is_asked(hub_api: HubApi) -> None:
    done = hub_api.hub.cli("ask", "Deploy?", "--default", "yes")
    assert done.returncode == 2 and "nothing agrees by itself" in done.stderr
    assert hub_api.prompts() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_caller_that_leaves_withdraws_its_question(hub_api: HubApi, number: signal.Signals) -> None:
    asking = hub_api.hub.popen("ask", "Deploy?")
    hub_api.next()
    asking.send_signal(number)
    asking.communicate()
    assert asking.returncode == 5
    hub_api.wait_quiet()
    assert any(entry["event"] == "PROMPT_WITHDRAWN" for entry in hub_api.audit())


def test_a_caller_that_is_killed_withdraws_its_question(hub_api: HubApi) -> None:
    asking = hub_api.hub.popen("ask", "Deploy?")
    hub_api.next()
    asking.kill()
    asking.communicate()
    hub_api.wait_quiet()


def test_canceling_says_withdrawn_to_the_caller(hub_api: HubApi) -> None:
    asking = hub_api.hub.popen("ask", "Deploy?")
    hub_api.answer("cancel")
    asking.communicate()
    assert asking.returncode == 5


def test_a_hub_that_is_killed_is_started_again_and_asks_the_same_question(hub_api: HubApi) -> None:
    asking = hub_api.hub.popen("ask", "Deploy?")
    before = hub_api.next()
    hub_api.hub.kill_9()
    hub_api.hub.start()
    after = hub_api.answer("y")
    assert after["prompt_id"] == before["prompt_id"]
    assert asking.communicate()[0] == "yes\n" and asking.returncode == 0


def test_several_questions_come_from_a_file_and_the_first_unanswered_ends_it(hub_api: HubApi, tmp_path: Path) -> None:
    file = tmp_path / "questions.json"
    items = [{"name": "go", "question": "Go?"}, {"name": "where", "question": "Where?", "choices": ["a", "b"]}]
    file.write_text(json.dumps([*items, {"name": "late", "question": "Late?", "ttl": 0.5}]))
    asking = hub_api.hub.popen("ask", "--file", str(file), "--json")
    hub_api.answer("y")
    hub_api.answer("b")
    out, _ = asking.communicate()
    answers = [json.loads(line) for line in out.splitlines()]
    assert [(item["name"], item["answer"]) for item in answers] == [("go", "yes"), ("where", "b"), ("late", None)]
    assert asking.returncode == 4


@pytest.mark.parametrize("text", ["no json", "[]", '[{"question": ""}]', '[{"question": "x", "speed": 1}]'])
def test_a_file_that_cannot_be_asked_is_refused_as_a_whole(hub_api: HubApi, tmp_path: Path, text: str) -> None:
    file = tmp_path / "questions.json"
    file.write_text(text)
    assert hub_api.hub.cli("ask", "--file", str(file)).returncode == 2
    assert hub_api.prompts() == []


def test_the_card_says_who_asks(hub_api: HubApi) -> None:
    environ = {"GITHUB_JOB": "release", "GITHUB_WORKFLOW": "ship", **hub_api.hub.environ}
    hub_api.hub.environ = environ
    asking = hub_api.hub.popen("ask", "Deploy?")
    hub_api.next()
    (session,) = hub_api.hub.ask("sessions")["sessions"]
    assert (session["tool"], session["label"]) == ("ask", "CI job release of ship")
    assert session["cwd"] == os.getcwd()
    hub_api.answer("n")
    asking.communicate()


def test_notify_tells_without_asking(hub_api: HubApi) -> None:
    done = hub_api.hub.cli("notify", "the build is done")
    assert done.returncode == 0 and hub_api.prompts() == []
    assert hub_api.hub.cli("notify", "   ").returncode == 1


REQUEST = {"hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": {"command": "touch made"}}


def decision_of(printed: str) -> dict[str, str]:
    said = json.loads(printed)["hookSpecificOutput"]
    assert said["hookEventName"] == "PermissionRequest"
    found: dict[str, str] = said["decision"]
    return found


@pytest.mark.parametrize(("value", "behavior"), [("y", "allow"), ("n", "deny"), ("use make", "deny")])
def test_a_hooks_permission_request_gets_the_persons_decision(hub_api: HubApi, value: str, behavior: str) -> None:
    with ThreadPoolExecutor() as pool:
        asking = pool.submit(hub_api.hub.cli, "ask", "--hook", given=json.dumps(REQUEST))
        prompt = hub_api.answer(value, as_text=len(value) > 1)
        done = asking.result()
    decision = decision_of(done.stdout)
    assert decision["behavior"] == behavior and done.returncode == 0
    assert prompt["subject"]["text"] == "touch made" and (value != "use make" or decision["message"] == "use make")


@pytest.mark.parametrize("told", ["", "[]", '{"tool_name": "Bash"}', json.dumps(REQUEST)])
def test_a_hook_that_cannot_ask_or_is_not_answered_denies(hub_api: HubApi, told: str) -> None:
    done = hub_api.hub.cli("ask", "--hook", "--ttl", "0.5s", given=told)
    assert decision_of(done.stdout)["behavior"] == "deny" and done.returncode == 0

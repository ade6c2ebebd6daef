"""`atlasbridge queue`: what waits for a tool's next idle box is seen, added and taken back at the terminal too."""

from __future__ import annotations

from tests.support.fake_host import FakeHost
from tests.support.hubs import hub_process
from tests.support.waiting import wait_for

from atlasbridge.core.prompt.model import Prompt, PromptType

IDLE = Prompt(PromptType.TYPE_FREE_TEXT, 0.9, "What next?", constraints={"idle": True}, digest="idle", line_mode=False)


def test_instructions_are_listed_counted_taken_back_and_typed() -> None:
    with hub_process() as hub, FakeHost(hub.home, label="web-api") as host:
        wait_for(lambda: hub.ask("sessions")["sessions"])
        assert "nothing is queued" in hub.cli("queue").stdout
        assert "Queued as number 1" in hub.cli("queue", "add", "web-api", "run the tests").stdout
        assert hub.cli("queue", "add", "web-api", "-", given="then commit\n").returncode == 0
        first, second = hub.json("queue")
        assert (first["text"], second["text"]) == ("run the tests", "then commit")
        assert hub.json("queue", "list") == [first, second]
        assert "web-api" in (listed := hub.cli("queue").stdout) and "run the tests" in listed
        assert "2 queued" in hub.cli("ps").stdout and hub.json("ps")[0]["queued"] == 2
        assert "will not be typed" in hub.cli("queue", "off", first["queue_id"][:8]).stdout
        assert hub.cli("queue", "off", first["queue_id"][:8]).returncode == 3
        host.raise_prompt(IDLE)
        assert host.answer_typing()["answer"]["value"] == "then commit"
        wait_for(lambda: hub.ask("queue")["queue"] == [])


def test_what_cannot_be_queued_is_refused_in_words() -> None:
    with hub_process() as hub, FakeHost(hub.home, label="web-api"):
        wait_for(lambda: hub.ask("sessions")["sessions"])
        refused = hub.cli("queue", "add", "web-api", "a\x1b[A")
        assert refused.returncode == 3 and "control" in refused.stderr
        unknown = hub.cli("queue", "add", "web-apo", "hello")
        assert unknown.returncode != 0 and "web-api" in unknown.stderr

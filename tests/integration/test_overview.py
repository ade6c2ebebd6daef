"""The bare command and the status line: what waits and what runs, at once, and no hub started for it."""

from __future__ import annotations

import subprocess
import sys

from tests.support.fake_host import YES_NO, FakeHost
from tests.support.hubs import hub_process
from tests.support.waiting import wait_for

from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.values import replace


def test_the_bare_command_shows_what_waits_and_what_runs() -> None:
    with hub_process() as hub, FakeHost(hub.home, label="web-api") as host, FakeHost(hub.home, label="quiet") as other:
        host.raise_prompt(replace(YES_NO, excerpt="Delete " + "x" * 150 + "?\x1b[2J (y/n)"))
        wait_for(lambda: hub.is_asked() and len(hub.ask("sessions")["sessions"]) == 2)
        shown = hub.cli().stdout
        assert "1 waiting for you" in shown and "web-api" in shown and "x" * 150 in shown and "\x1b" not in shown
        assert "1 running" in shown and "quiet" in shown and "atlasbridge approvals" in shown
        assert "Every day:" in hub.cli("--help").stdout
        assert hub.cli("status", "--line").stdout == "1 waiting: web-api\n"
        host.end()
        other.end()
        wait_for(lambda: hub.ask("sessions")["sessions"] == [])
        assert hub.cli("status", "--line").stdout == ""


def test_without_a_hub_the_bare_command_helps_and_starts_none() -> None:
    with hub_process(start=False) as hub:
        first = hub.cli().stdout
        assert "atlasbridge demo" in first and "atlasbridge --help" in first
        assert len(first.splitlines()) < 20, "it fits into a small window"
        line = hub.cli("status", "--line")
        assert (line.returncode, line.stdout, line.stderr) == (0, "", "")
        assert hub.pid == 0


def test_the_status_line_imports_nothing_heavy() -> None:
    script = """
import sys
sys.argv = ["atlasbridge", "status", "--line"]
import atlasbridge.__main__ as it
it._leave = lambda status: (_ for _ in ()).throw(SystemExit(status))
try:
    it.main()
finally:
    heavy = ("click", "rich", "asyncio", "pydantic", "httpx")
    sys.stderr.write(" ".join(name for name in heavy if name in sys.modules))
"""
    with hub_process(start=False) as hub:
        done = subprocess.run([sys.executable, "-c", script], env=hub.environ, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_tool_at_its_prompt_is_listed_apart_and_does_not_count() -> None:
    resting = replace(YES_NO, type=PromptType.TYPE_FREE_TEXT, excerpt="bash-5.2$", constraints={"idle": True})
    with hub_process() as hub, FakeHost(hub.home, label="shell") as host:
        host.raise_prompt(resting)
        wait_for(lambda: hub.ask("prompts")["prompts"])
        for words in ((), ("status",), ("approvals", "--once")):
            shown = hub.cli(*words).stdout
            assert "nothing is waiting for you" in shown and "at its prompt" in shown and "bash-5.2$" in shown, words
        assert "at its prompt" in hub.cli("ps").stdout
        assert "0 waiting for you, 1 at their prompt" in hub.cli("hub", "status").stdout
        assert hub.cli("status", "--line").stdout == "1 running\n"
        host.end()


def test_status_is_the_overview_with_the_hub_below_it() -> None:
    with hub_process() as hub, FakeHost(hub.home, label="shop") as host:
        host.raise_prompt(YES_NO)
        wait_for(hub.is_asked)
        overview = hub.cli().stdout.split("\nanswer: ")[0]
        status = hub.cli("status").stdout
        assert "1 waiting for you" in overview and status.startswith(overview)
        assert "hub       process" in status and "sessions  " not in status, "no count is shown twice"
        host.end()
        wait_for(lambda: not hub.ask("sessions")["sessions"])
        assert "shop" not in hub.cli("status").stdout and "shop" in hub.cli("status", "--all").stdout

"""Why am I not asked?  `lab explain` of a session that runs says what its host judged last."""

from __future__ import annotations

from tests.support.hubs import hub_process
from tests.support.waiting import wait_for


def test_a_running_session_says_why_nothing_is_asked_and_what_is() -> None:
    with hub_process() as hub:
        assert hub.cli("run", "--detach", "--", "bash", "-c", "echo Working; sleep 60").returncode == 0
        wait_for(lambda: "busy" in explained(hub))
        said = explained(hub)
        assert "asks nothing" in said and "it is busy: no prompt" in said
        hub.cli("kill", "--force", session_of(hub))
        wait_for(lambda: hub.ask("sessions")["sessions"] == [])
        assert hub.cli("run", "--detach", "--", "bash", "-c", "read -p 'Go on? [y/n] ' a").returncode == 0
        wait_for(hub.is_asked)
        said = explained(hub)
        assert "rule yes-no sees yes_no" in said and "blocks in read" in said
        hub.cli("kill", "--force", session_of(hub))


def test_a_session_is_explained_by_its_name_and_a_name_nobody_has_is_told() -> None:
    with hub_process() as hub:
        assert hub.cli("run", "--detach", "--label", "night build", "--", "bash", "-c", "sleep 60").returncode == 0
        wait_for(lambda: hub.ask("sessions")["sessions"] != [])
        for said in ("night build", "Night"):
            done = hub.cli("lab", "explain", said)
            assert done.returncode == 0 and "asks nothing" in done.stdout
        done = hub.cli("lab", "explain", "day")
        assert done.returncode != 0 and "no prompt and no running session is called 'day'" in done.stderr
        hub.cli("kill", "--force", "night build")


def session_of(hub: object) -> str:
    (session,) = hub.ask("sessions")["sessions"]  # type: ignore[attr-defined]
    return str(session["session_id"])


def explained(hub: object) -> str:
    if not hub.ask("sessions")["sessions"]:  # type: ignore[attr-defined]
        return ""
    done = hub.cli("lab", "explain", session_of(hub))  # type: ignore[attr-defined]
    return str(done.stdout)

"""Without a hub the tool and the keyboard work on; what was asked meanwhile is asked as soon as a hub is back."""

from __future__ import annotations

from tests.support.arena import Fighter, arena, recorder
from tests.support.hub_rounds import kill_and_restart
from tests.support.terminal import ATLASBRIDGE, Terminal
from tests.support.waiting import wait_for


def test_the_tool_and_the_keyboard_work_on_and_prompts_wait() -> None:
    with arena() as place:
        place.start_hub()
        fighter = Fighter(place, "hub", place.home.root / "hub.got")
        with Terminal((*ATLASBRIDGE, "run", "--label", "hub", "--", *recorder(fighter)), place.home.root) as terminal:
            terminal.wait_for("Question 0 of")
            wait_for(lambda: place.ask("prompts")["prompts"], "the first prompt")
            place.kill_hub()
            for number in range(3):
                terminal.wait_for(f"Question {number} of")
                terminal.type(f"by hand {number}\r")
            terminal.wait_for("Question 3 of")
            place.start_hub()
            (session,) = place.ask("sessions")["sessions"]
            fighter.session_id = session["session_id"]
            place.answer(fighter, 3, "remotely")
            terminal.wait_for("remotely")
            assert fighter.received() == [*(f"{number}\tby hand {number}" for number in range(3)), "3\tremotely"]


def test_twenty_deaths_of_the_hub_cost_three_sessions_nothing() -> None:
    with arena() as place:
        place.start_hub()
        back_s = kill_and_restart(place, sessions=3, rounds=20)
        assert len(back_s) == 20

"""Where a prompt of some machine may be shown, and which ladder it climbs.  Pure."""

from __future__ import annotations

from atlasbridge.core.policy.ladder import Ladder, Outlet, choose_ladder, default_ladder
from atlasbridge.core.routing.chat_plan import ChatLane, ChatPlan
from atlasbridge.core.routing.policy import decide_reminders
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.values import replace
from atlasbridge.desk.chats.crowd import Crowd
from atlasbridge.desk.chats.readout import FleetPrompt


def outlets_for(asked: FleetPrompt, lanes: tuple[ChatLane, ...], crowd: Crowd) -> tuple[Outlet, ...]:
    """Where it may be shown: only to who may see it.  A room that several read needs all of them to."""
    found = []
    for lane in lanes:
        present = crowd.in_channel(lane.name)
        people = present & asked.readers
        if people and (lane.personal or people == present):
            found.append(Outlet(lane.name, True, tuple(sorted(people))))
    return tuple(found)


def ladder_for(asked: FleetPrompt, plan: ChatPlan, crowd: Crowd, session: SessionRecord) -> Ladder:
    reminders = decide_reminders(asked.record.prompt, plan.policy)
    found = choose_ladder(plan.ladders, asked.record.prompt, session, default_ladder(reminders))
    return replace(found, steps=tuple(replace(step, who=_who(step.who, crowd)) for step in found.steps))


def _who(words: tuple[str, ...], crowd: Crowd) -> tuple[str, ...]:
    """A team of which nobody is left still means somebody in particular, not everybody."""
    return crowd.named(words) or words

"""The escalation policy: no step twice, none after the end, presence only delays, quiet only silences, everybody is
reached."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.escalation_life import World, live, worlds
from tests.support.sample_prompt import YES_NO

from atlasbridge.core.policy.escalation import (
    Bursts,
    EscalationPlan,
    EscalationPolicy,
    EscalationStep,
    Life,
    NoticeBudget,
    Outlook,
    PresenceSettings,
    Route,
    choose_escalation,
    decide_notifications,
    default_escalation,
)
from atlasbridge.core.prompt.model import Subject, SubjectKind
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.values import replace

DEFAULT = default_escalation((300.0,))
HERE, CHAT = Route("web", False), Route("telegram", True, ("Ana", "Bo"))
LIFE = Life(asked_at=1000.0, deadline=1600.0)
PRESENCE = PresenceSettings()


def plan(
    outlook: Outlook,
    life: Life = LIFE,
    escalation_policy: EscalationPolicy = DEFAULT,
    routes: tuple[Route, ...] = (HERE, CHAT),
) -> EscalationPlan:
    return decide_notifications(escalation_policy, life, routes, outlook, PRESENCE)


def told(found: EscalationPlan) -> list[str]:
    return [notice.channel for notice in found.notices]


def test_with_nobody_at_the_keyboard_every_channel_is_asked_at_once() -> None:
    found = plan(Outlook(1000.0))
    assert told(found) == ["web", "telegram"] and all(one.loud and not one.reminder for one in found.notices)
    assert found.look_at == 1300.0


def test_keys_a_moment_ago_hold_back_what_leaves_the_hub_api_and_nothing_else() -> None:
    found = plan(Outlook(1000.0, last_key_at=997.0))
    assert told(found) == ["web"] and found.look_at == 1017.0
    asked = replace(LIFE, done=frozenset({(0, "web")}))
    assert told(plan(Outlook(1017.0, last_key_at=997.0), asked)) == ["telegram"]


def test_keys_that_never_stop_delay_a_minute_at_most() -> None:
    asked = replace(LIFE, done=frozenset({(0, "web")}))
    assert told(plan(Outlook(1059.0, last_key_at=1058.0), asked)) == []
    assert told(plan(Outlook(1060.0, last_key_at=1060.0), asked)) == ["telegram"]


def test_who_said_away_is_asked_at_once_whatever_is_typed() -> None:
    assert told(plan(Outlook(1000.0, last_key_at=1000.0, away=True))) == ["web", "telegram"]


def test_a_reminder_comes_once_and_only_where_it_was_asked_before() -> None:
    asked = replace(LIFE, done=frozenset({(0, "web"), (0, "telegram")}))
    found = plan(Outlook(1300.0), asked)
    assert [(one.channel, one.reminder) for one in found.notices] == [("web", True), ("telegram", True)]
    after = replace(asked, done=asked.done | {(1, "web"), (1, "telegram")})
    assert plan(Outlook(1301.0), after) == EscalationPlan((), 1600.0)


def test_after_a_long_absence_of_the_hub_there_is_one_notice_for_each_channel() -> None:
    found = plan(Outlook(1400.0))
    assert [(one.channel, one.steps, one.reminder) for one in found.notices] == [
        ("web", (0, 1), False),
        ("telegram", (0, 1), False),
    ]


def test_nothing_is_told_after_the_end_or_when_time_is_over() -> None:
    assert plan(Outlook(1100.0), replace(LIFE, ended=True)) == EscalationPlan()
    assert plan(Outlook(1600.0)) == EscalationPlan(over=True)


def test_quiet_hours_take_the_sound_but_not_the_message_and_urgent_keeps_both() -> None:
    asleep = Outlook(1000.0, quiet=frozenset({"Ana", "Bo"}))
    (notice,) = plan(asleep, routes=(CHAT,)).notices
    assert not notice.loud and notice.silent == {"Ana", "Bo"}
    (urgent,) = plan(asleep, escalation_policy=replace(DEFAULT, urgent=True), routes=(CHAT,)).notices
    assert urgent.loud and urgent.silent == frozenset()


def test_one_who_is_awake_hears_it_while_the_other_sleeps() -> None:
    (notice,) = plan(Outlook(1000.0, quiet=frozenset({"Ana"})), routes=(CHAT,)).notices
    assert notice.loud and notice.silent == {"Ana"}


def test_a_later_step_widens_the_circle_and_asks_instead_of_reminding() -> None:
    escalation_policy = EscalationPolicy((EscalationStep(0, ("Ana",), ("away",)), EscalationStep(60, (), ("away",))))
    (first,) = plan(Outlook(1000.0), escalation_policy=escalation_policy).notices
    assert (first.channel, first.who) == ("telegram", ("Ana",))
    (second,) = plan(Outlook(1060.0), replace(LIFE, done=frozenset({(0, "telegram")})), escalation_policy).notices
    assert second.who == () and not second.reminder


def test_a_escalation_that_reaches_nobody_is_no_reason_to_ask_nobody() -> None:
    escalation_policy = EscalationPolicy((EscalationStep(0, (), ("pager",)),))
    assert told(plan(Outlook(1000.0), escalation_policy=escalation_policy)) == ["web", "telegram"]


def test_the_class_of_a_prompt_is_its_tool_folder_label_and_kind() -> None:
    session = SessionRecord("s", "claude", ("claude",), "/home/a/prod/x", 1, 1, "", label="deploy")
    prompt = replace(YES_NO, subject=Subject(SubjectKind.COMMAND, "make deploy"))
    mine: tuple[dict[str, Any], ...] = (
        {"tool": "claude"},
        {"folder": "/home/a/prod/*"},
        {"label": "dep*"},
        {"kind": "command"},
        {},
    )
    for fields in mine:
        own = EscalationPolicy((EscalationStep(5),), "own", **fields)
        assert choose_escalation([own], prompt, session, DEFAULT) is own
    others: tuple[dict[str, Any], ...] = ({"tool": "codex"}, {"folder": "/srv/*"}, {"label": "x"}, {"kind": "edit"})
    for fields in others:
        assert (
            choose_escalation([EscalationPolicy((EscalationStep(5),), "own", **fields)], prompt, session, DEFAULT)
            is DEFAULT
        )


@settings(deadline=None)
@given(worlds())
def test_every_prompt_ends_in_an_answer_a_default_or_nobody_and_is_told_of_rightly(world: World) -> None:
    """Whatever the escalation policy, the people, the keys, the outages and the restarts are."""
    assert live(world) == []


@given(st.lists(st.floats(0, 100_000), max_size=200), st.floats(1, 100))
def test_in_any_window_there_is_one_first(moments: list[float], window_s: float) -> None:
    bursts, firsts = Bursts(window_s), []
    for now in sorted(moments):
        if bursts.rank(("telegram",), now) == 0:
            firsts.append(now)
    assert all(later - sooner >= window_s for sooner, later in itertools.pairwise(firsts))


@given(st.lists(st.integers(0, 20_000), max_size=300), st.integers(1, 20))
def test_nobody_gets_more_than_so_many_in_an_hour(moments: list[int], limit: int) -> None:
    budget, heard = NoticeBudget(limit), []
    for now in sorted(moments):
        if not budget.is_spent("Ana", now):
            budget.spend("Ana", now)
            heard.append(now)
    assert all(sum(1 for at in heard if now - 3600 < at <= now) <= limit for now in heard)
    assert not NoticeBudget(0).is_spent("Ana", 0.0)


def test_a_escalation_whose_steps_all_come_too_late_asks_everybody_at_once() -> None:
    routes = (Route("web", False), Route("telegram", True))
    late = EscalationPolicy((EscalationStep(600, channels=("telegram",)),))
    plan = decide_notifications(late, Life(0, 600), routes, Outlook(0), PresenceSettings())
    assert {one.channel for one in plan.notices} == {"web", "telegram"}


def test_who_wants_to_be_asked_again_is_left_alone_until_then_and_told_once_more() -> None:
    routes = (Route("web", False), Route("telegram", True))
    escalation_policy = EscalationPolicy((EscalationStep(), EscalationStep(300)))
    done = frozenset((0, route.name) for route in routes)
    put_off = Life(0, 2000, done, wakes=(900,), held_until=900)
    assert decide_notifications(escalation_policy, put_off, routes, Outlook(899), PresenceSettings()) == EscalationPlan(
        look_at=900
    )
    woken = decide_notifications(escalation_policy, put_off, routes, Outlook(900), PresenceSettings())
    assert [(one.channel, one.steps, one.reminder) for one in woken.notices] == [
        ("web", (1, 1000), True),
        ("telegram", (1, 1000), True),
    ]

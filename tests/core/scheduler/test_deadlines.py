"""The scheduler against a plain dictionary."""

from __future__ import annotations

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from atlasbridge.core.clock import ManualClock
from atlasbridge.core.scheduler.service import Scheduler

KEYS = st.sampled_from("abcde")
STEPS = st.one_of(
    st.tuples(st.just("set"), KEYS, st.integers(0, 20)),
    st.tuples(st.just("cancel"), KEYS, st.just(0)),
    st.tuples(st.just("due"), st.just(""), st.integers(0, 20)),
)


def test_an_action_that_an_earlier_one_cancelled_or_moved_does_not_run() -> None:
    clock, ran = ManualClock(now=100.0), list[str]()
    scheduler = Scheduler(clock)
    scheduler.set("b", 20.0, lambda: ran.append("b"))
    scheduler.set("c", 20.0, lambda: ran.append("c"))

    def first() -> None:
        scheduler.cancel("b")
        scheduler.set("c", 130.0, lambda: ran.append("c, later"))

    scheduler.set("a", 10.0, first)
    scheduler.cancel("never there")
    assert scheduler.run_due() == 30.0 and ran == []
    clock.advance(30.0)
    assert scheduler.run_due() is None and ran == ["c, later"]


@given(st.lists(STEPS, max_size=60))
def test_it_behaves_like_a_sorted_dictionary(steps: list[tuple[str, str, int]]) -> None:
    clock, ran, model = ManualClock(now=0.0), list[str](), dict[str, float]()
    scheduler = Scheduler(clock)
    for step, key, number in steps:
        if step == "set":
            scheduler.set(key, clock.now() + number, partial(ran.append, key))
            model[key] = clock.now() + number
        elif step == "cancel":
            scheduler.cancel(key)
            model.pop(key, None)
        else:
            clock.advance(number)
            left_s = scheduler.run_due()
            due = sorted((at, name) for name, at in model.items() if at <= clock.now())
            assert ran == [name for _, name in due]
            model = {name: at for name, at in model.items() if at > clock.now()}
            ran.clear()
            assert left_s == min((at - clock.now() for at in model.values()), default=None)

"""The deadline queue against a plain dictionary."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from atlasbridge.core.scheduler.deadlines import Deadlines

KEYS = st.sampled_from("abcde")
STEPS = st.one_of(
    st.tuples(st.just("set"), KEYS, st.integers(0, 20)),
    st.tuples(st.just("drop"), KEYS, st.just(0)),
    st.tuples(st.just("due"), st.just(""), st.integers(0, 20)),
)


def test_the_earliest_comes_first_and_each_only_once() -> None:
    queue = Deadlines()
    queue.set("late", 20.0)
    queue.set("early", 10.0)
    assert queue.next_at() == 10.0
    assert queue.due(9.9) == []
    assert queue.due(20.0) == ["early", "late"]
    assert queue.due(20.0) == [] and queue.next_at() is None and len(queue) == 0


def test_setting_again_replaces_and_dropping_forgets() -> None:
    queue = Deadlines()
    queue.set("a", 10.0)
    queue.set("a", 30.0)
    queue.set("b", 20.0)
    queue.drop("b")
    queue.drop("never there")
    assert queue.due(25.0) == []
    assert "a" in queue and "b" not in queue
    assert queue.due(30.0) == ["a"]


def test_memory_is_bounded_by_what_waits() -> None:
    queue = Deadlines()
    for number in range(10_000):
        queue.set("a", float(number))
    assert len(queue._heap) < 100
    assert queue.due(1e9) == ["a"]


@given(st.lists(STEPS, max_size=60))
def test_it_behaves_like_a_sorted_dictionary(steps: list[tuple[str, str, int]]) -> None:
    queue, model = Deadlines(), dict[str, float]()
    for step, key, number in steps:
        if step == "set":
            queue.set(key, float(number))
            model[key] = float(number)
        elif step == "drop":
            queue.drop(key)
            model.pop(key, None)
        else:
            due = sorted((at, name) for name, at in model.items() if at <= number)
            assert queue.due(float(number)) == [name for _, name in due]
            for _, name in due:
                del model[name]
        assert queue.next_at() == min(model.values(), default=None)
        assert len(queue) == len(model)

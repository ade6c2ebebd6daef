"""Notifies everybody when the store cannot record anything, and when it can again. The ledger detects the condition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from atlasbridge.core.clock import Clock
from atlasbridge.core.daemon.stream import EventStream
from atlasbridge.core.routing.router import PromptRouter

QUIET_S = 60.0  # people are notified at most once in this time, even if a disk keeps filling up and emptying
_ON = "Nothing is typed for you now, because it could not be recorded: {alarm}. The keyboard works on."
_OFF = "All can be recorded again; answers are typed as before."


class StoreAlarm:
    """`look_again` is called when an alarm starts: it schedules another attempt to write to the store."""

    def __init__(self, stream: EventStream, router: PromptRouter, clock: Clock, look_again: Callable[[], None]) -> None:
        self._stream = stream
        self._router = router
        self._clock = clock
        self._look_again = look_again
        self._quiet_until = float("-inf")
        self._told_people = False

    def changed(self, alarm: str) -> None:
        """Called by the ledger, possibly inside a failed transaction, so this method must not write to the store."""
        if alarm:
            self._stream.publish("store.alarm", **describe(alarm))
            self._look_again()
            if self._clock.now() >= self._quiet_until:
                self._quiet_until, self._told_people = self._clock.now() + QUIET_S, True
                self._router.notify(_ON.format(alarm=alarm))
        else:
            self._stream.publish("store.recovered", sentence=_OFF)
            if self._told_people:
                self._told_people = False
                self._router.notify(_OFF)


def describe(alarm: str) -> dict[str, Any]:
    return {"alarm": alarm, "sentence": _ON.format(alarm=alarm)}

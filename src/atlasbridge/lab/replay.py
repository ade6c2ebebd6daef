"""Runs a recording through the detector on a virtual clock: which prompts are raised, and when.

It reads asciicast v2 (`o` output, `i` input, `r` resize). There is no live process, so the probe is simulated: an event
loop for tools that have one, "unknown" for all others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atlasbridge.core.detection import events
from atlasbridge.core.detection.detector import Detector
from atlasbridge.core.detection.events import Command, Event, ProbeAnswer, ProbeState, RaisePrompt, WithdrawPrompt
from atlasbridge.core.detection.verdict import DetectorSettings
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.screen.screen import Screen


@dataclass(frozen=True, slots=True)
class Recording:
    rows: int
    cols: int
    title: str
    command: str
    events: tuple[tuple[float, str, str], ...]

    @property
    def ends_at(self) -> float:
        return self.events[-1][0] if self.events else 0.0


def read_recording(path: Path) -> Recording:
    """Read a recording. A line that is not an event is an error with its number."""
    lines = path.read_text("utf-8").splitlines()
    number = 1
    try:
        head = json.loads(lines[0])
        rows, cols = int(head["height"]), int(head["width"])
        read = []
        for line in lines[1:]:
            number += 1
            if line.strip():
                at, kind, data = json.loads(line)
                read.append((float(at), str(kind), str(data)))
    except (ValueError, KeyError, IndexError, TypeError) as error:
        what = f"{path}, line {number}, is no asciicast v2: {error}"
        raise AtlasBridgeError(what, "Record it with `atlasbridge lab record`.") from None
    return Recording(rows, cols, str(head.get("title", "")), str(head.get("command", "")), tuple(read))


class Player:
    """Feeds one detector and handles its wake-ups, so that a recording plays like a live session."""

    def __init__(self, detector: Detector, probe: ProbeAnswer) -> None:
        self.detector = detector
        self.probe = probe
        self.wake_at: float | None = None

    def tell(self, event: Event, now: float) -> Iterator[tuple[float, Command]]:
        yield from self._obey(self.detector.handle(event, now), now)

    def pass_time(self, until: float) -> Iterator[tuple[float, Command]]:
        while self.wake_at is not None and self.wake_at <= until:
            now, self.wake_at = self.wake_at, None
            yield from self._obey(self.detector.handle(events.WakeupDue(), now), now)

    def look(self, now: float) -> ProbeAnswer:
        return self.probe

    def _obey(self, commands: list[Command], now: float) -> Iterator[tuple[float, Command]]:
        for command in commands:
            match command:
                case events.RequestWakeup(at):
                    self.wake_at = at
                case events.RequestProbe():
                    yield from self._obey(self.detector.handle(events.ProbeAnswered(self.look(now)), now), now)
                case _:
                    yield now, command


def simulated_probe(tool: str) -> ProbeAnswer:
    """AI CLIs always run an event loop in raw mode; of other programs nothing is known."""
    if tool == "generic":
        return ProbeAnswer(ProbeState.UNKNOWN, "replayed")
    return ProbeAnswer(ProbeState.POLLING, "replayed", echo=False, canonical=False)


def replay(
    recording: Recording, dialect: Dialect, settings: DetectorSettings | None = None, tail_s: float = 3.0
) -> Iterator[tuple[float, Command]]:
    """Yield every prompt that is raised or withdrawn, with its second in the recording."""
    detector = Detector(dialect, recording.rows, recording.cols, settings)
    player = Player(detector, simulated_probe(dialect.name))
    for at, kind, data in recording.events:
        yield from player.pass_time(at)
        yield from player.tell(event_of(kind, data), at)
    yield from player.pass_time(recording.ends_at + tail_s)
    yield from player.tell(events.ChildExited(), recording.ends_at + tail_s)


def screen_at(recording: Recording, until: float) -> Screen:
    """The screen at that second."""
    screen = Screen(recording.rows, recording.cols)
    for at, kind, data in recording.events:
        if at > until:
            break
        match event_of(kind, data):
            case events.OutputReceived(raw):
                screen.feed(raw)
            case events.Resized(rows, cols):
                screen.resize(rows, cols)
    return screen


def judgements(recording: Recording, dialect: Dialect) -> Iterator[tuple[float, list[str]]]:
    """Yield every change of the detector's judgement, with its second: for `lab explain`."""
    detector = Detector(dialect, recording.rows, recording.cols)
    player = Player(detector, simulated_probe(dialect.name))
    said: list[str] = []
    for at, kind, data in [*recording.events, (recording.ends_at + 3.0, "", "")]:
        for moment, command in player.pass_time(at):
            yield moment, [_headline(command), *detector.explain()]
        if detector.explain() != said and detector.open_prompt is None:
            said = detector.explain()
            yield at, said
        for moment, command in player.tell(event_of(kind, data), at):
            yield moment, [_headline(command), *detector.explain()]


def _headline(command: Command) -> str:
    match command:
        case RaisePrompt(prompt):
            return f"RAISED {prompt.type.value} ({prompt.confidence.value}): {prompt.excerpt!r}"
        case WithdrawPrompt(reason=reason):
            return f"WITHDRAWN: {reason}"
    return type(command).__name__


def event_of(kind: str, data: str) -> Event:
    raw = data.encode("utf-8", "surrogateescape")
    if kind == "r":
        cols, _, rows = data.partition("x")
        return events.Resized(int(rows), int(cols))
    return events.KeysTyped(raw) if kind == "i" else events.OutputReceived(raw if kind == "o" else b"")


def render(at: float, command: Command) -> dict[str, Any]:
    """One line of `lab replay --json`."""
    match command:
        case RaisePrompt(prompt):
            return {"event": "prompt.raised", "at_s": round(at, 3), **prompt.to_json(), "digest": prompt.digest}
        case WithdrawPrompt(digest, reason):
            return {"event": "prompt.withdrawn", "at_s": round(at, 3), "digest": digest, "reason": reason}
    raise AssertionError(command)

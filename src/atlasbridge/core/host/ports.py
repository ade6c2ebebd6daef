"""The parts that the edges provide for a session: created by the composition root, kept through the fork, used once the
tool runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from atlasbridge.core.detection.events import Command, Event
from atlasbridge.core.home import Home
from atlasbridge.core.prompt.model import Prompt
from atlasbridge.core.session.settings import Plan, SessionSettings
from atlasbridge.core.tty import Pty, Size
from atlasbridge.core.values import frozen

if TYPE_CHECKING:
    from atlasbridge.core.host.typist import Encode
    from atlasbridge.core.ports import WaitingProbe


@frozen
class HostParts:
    spawn: Callable[[Plan, Size, list[Any] | None], Pty]
    judge: Callable[[Plan, Pty, Size], tuple[DetectorLike, WaitingProbe]]
    encode: Encode
    start_hub: Callable[[], None]
    hub_path: str


class Prepared(NamedTuple):
    home: Home
    parts: HostParts
    settings: SessionSettings
    size: Size
    attributes: list[Any] | None  # the person's own terminal settings


# What a session needs from a detector and from the tool's output, and its open prompt.


class DetectorLike(Protocol):
    screen: Any
    secrets: tuple[str, ...]

    @property
    def open_prompt(self) -> Prompt | None: ...
    @property
    def despite_busy(self) -> bool: ...
    def handle(self, event: Event, now: float) -> list[Command]: ...
    def still_shows(self, digest: str) -> bool: ...
    def begun(self, now: float) -> bool: ...
    def reconsider(self) -> None: ...
    def has_left(self, digest: str) -> bool: ...
    def took_first_key(self) -> None: ...
    def explain(self) -> list[str]: ...


class Outflow(Protocol):
    last_output_at: float
    finished: bool

    @property
    def pending(self) -> bool: ...
    @property
    def terminal_answers(self) -> bool: ...


@frozen
class Opened:
    prompt_id: str
    prompt: Prompt

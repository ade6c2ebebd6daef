"""How often the detector looks, how long it waits, and what it must keep to itself."""

from __future__ import annotations

from atlasbridge.core.detection.signals import Patience
from atlasbridge.core.values import field, frozen


@frozen
class DetectorSettings:
    patience: Patience = field(default_factory=Patience)
    first_look_s: float = 0.02
    look_every_s: float = 0.25
    slow_look_s: float = 0.5  # at most, after some seconds of nothing
    watch_s: float = 1.0  # while a prompt is open
    effect_s: float = 3.0  # an answered prompt that is still there after this is asked again
    hook_s: float = 0.0  # how long a dialog may wait for the hook of a tool that was started with one
    folder: str = ""  # where the tool works, for dialogs that do not say it
    secrets: tuple[str, ...] = ()  # values that must never leave, such as the child's secret environment

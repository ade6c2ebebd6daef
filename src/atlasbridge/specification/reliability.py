"""The names of the reliability document."""

from __future__ import annotations

from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.lab.scenario import BasePromptLabScenario, DetectorResult
from atlasbridge.lab.scenarios import (
    ANSIRedrawScenario,
    ConPTYBaselineScenario,
    EchoLoopScenario,
    FreeTextConstraintScenario,
    MultipleChoiceScenario,
    NestedPromptsScenario,
    OutputFloodScenario,
    OverwrittenPromptScenario,
    PartialLinePromptScenario,
    PressEnterScenario,
    SilentBlockScenario,
    YesNoVariantsScenario,
)
from atlasbridge.os.tty.posix import PosixPTY as PosixPTYBackend
from atlasbridge.os.tty.windows import WindowsPTY as ConPTYBackend
from atlasbridge.specification.document_classes import PromptDetector, PTYSupervisor

__all__ = [
    "ANSIRedrawScenario",
    "BasePromptLabScenario",
    "ConPTYBackend",
    "ConPTYBaselineScenario",
    "DetectorResult",
    "EchoLoopScenario",
    "FreeTextConstraintScenario",
    "MultipleChoiceScenario",
    "NestedPromptsScenario",
    "OutputFloodScenario",
    "OverwrittenPromptScenario",
    "PTYSupervisor",
    "PartialLinePromptScenario",
    "PosixPTYBackend",
    "PressEnterScenario",
    "PromptDetector",
    "PromptRecord",
    "SilentBlockScenario",
    "YesNoVariantsScenario",
]

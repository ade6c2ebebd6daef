"""Scenarios of the gating matrix that run in another suite: about Slack, and about the Windows console."""

from __future__ import annotations

from atlasbridge.lab.scenario import Elsewhere, register_elsewhere

SLACK = "tests/channels, against a strict fake of Slack; live with a test workspace in the release job"
WINDOWS = "tests/prompt_lab -k QA-020 in the Windows job"

for qa_id, name, description in (
    ("QA-010", "SlackMessageFormatScenario", "A prompt as a Slack message: header of ours, quoted excerpt, buttons"),
    ("QA-013", "SlackThreadReplyScenario", "Text in a thread answers the prompt of its message"),
    ("QA-014", "SlackMultiUserScenario", "The first valid reply wins; others are told who answered"),
    ("QA-015", "SlackRateLimitScenario", "A rate limit delays a message and loses none"),
):
    register_elsewhere(Elsewhere(qa_id, name, description, ("macos", "linux", "windows"), SLACK))
register_elsewhere(
    Elsewhere(
        "QA-020",
        "ConPTYBaselineScenario",
        "A prompt on the Windows console is raised and answered",
        ("windows",),
        WINDOWS,
    )
)

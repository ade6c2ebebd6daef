"""Scenarios of the documents that no terminal acts out: those about Slack, and ids that nobody has defined."""

from __future__ import annotations

from atlasbridge.lab.scenario import Elsewhere, register_elsewhere

SLACK = "tests/channels, against a strict fake of Slack; live with a test workspace in the release job"
SLACK_TESTS = "tests/channels/test_qa_slack.py"
RESERVED = "The documents reserve QA-010 to QA-017 for channels and do not say what this one is"

for qa_id, name, description in (
    ("QA-010", "SlackMessageFormatScenario", "A prompt as a Slack message: header of ours, quoted excerpt, buttons"),
    ("QA-013", "SlackThreadReplyScenario", "Text in a thread answers the prompt of its message"),
    ("QA-014", "SlackMultiUserScenario", "The first valid reply wins; others are told who answered"),
    ("QA-015", "SlackRateLimitScenario", "A rate limit delays a message and loses none"),
):
    systems = ("macos", "linux", "windows")
    register_elsewhere(Elsewhere(qa_id, name, description, systems, SLACK, SLACK_TESTS, qa_id))
for qa_id in ("QA-011", "QA-012", "QA-016", "QA-017"):
    register_elsewhere(Elsewhere(qa_id, "(not defined)", RESERVED, (), "no suite"))

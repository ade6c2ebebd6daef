"""A Claude Agent SDK agent whose permissions are asked at the keyboard: pass `can_use_tool` to `ClaudeAgentOptions`.

    options = ClaudeAgentOptions(can_use_tool=can_use_tool)

The SDK is imported only when a verdict is made, so that this file can be read, and tried, without it.
"""

from __future__ import annotations

import os
from typing import Any

from atlasbridge.client import Answered, AsyncClient
from atlasbridge.core.prompt.question import question_of

TTL_S = 1800.0


async def ask_for(tool_name: str, tool_input: dict[str, Any], client: AsyncClient | None = None) -> Answered:
    """What a person says of it: true only if somebody allowed it, once."""
    question = question_of(tool_name, tool_input, os.getcwd())
    answer = await (client or AsyncClient(label="an SDK agent")).ask(question.text, about=question, ttl_s=TTL_S)
    return answer if answer.words == question.choices[0] else Answered(answer.outcome, answer.words, True, answer.by)


async def can_use_tool(tool_name: str, tool_input: dict[str, Any], context: Any) -> Any:
    from claude_agent_sdk import PermissionResultAllow, PermissionResultDeny

    answer = await ask_for(tool_name, tool_input)
    if answer:
        return PermissionResultAllow()
    return PermissionResultDeny(message=answer.words or "Nobody allowed it.")

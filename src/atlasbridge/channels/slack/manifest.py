"""The Slack app as Slack's own page takes it, "from a manifest".  `docs/slack-manifest.json` is a copy."""

from __future__ import annotations

import json
from typing import Any

BOT_SCOPES = ["chat:write", "commands", "files:read", "files:write", "im:history", "im:write", "users:read"]
MANIFEST: dict[str, Any] = {
    "display_information": {
        "name": "AtlasBridge",
        "description": "Asks you when an AI coding tool waits for a person.",
    },
    "features": {
        "app_home": {
            "home_tab_enabled": False,
            "messages_tab_enabled": True,
            "messages_tab_read_only_enabled": False,
        },
        "bot_user": {"display_name": "AtlasBridge", "always_online": True},
        "slash_commands": [
            {
                "command": "/atlasbridge",
                "description": "What runs and what waits",
                "usage_hint": "status | sessions | screen NAME | help",
                "should_escape": False,
            }
        ],
    },
    "oauth_config": {"scopes": {"bot": BOT_SCOPES}},
    "settings": {
        "event_subscriptions": {"bot_events": ["message.im"]},
        "interactivity": {"is_enabled": True},
        "org_deploy_enabled": False,
        "socket_mode_enabled": True,
        "token_rotation_enabled": False,
    },
}
STEPS = """1. Open https://api.slack.com/apps, press "Create New App", "From a manifest", choose your workspace, paste:

{manifest}

2. Press "Install to Workspace" and copy the bot token (xoxb-...) from "OAuth & Permissions".
3. Under "Basic Information", "App-Level Tokens", make a token with the scope connections:write and copy it (xapp-...).
Without the manifest: switch on Socket Mode and Interactivity, subscribe to the bot event message.im, and under
"App Home" switch on the Messages Tab and allow messages in it: it is off by default, and nobody could write to the app.
To use a channel, too: add the scopes channels:history and groups:history, the events message.channels and
message.groups, and invite the app there."""


def manifest_json() -> str:
    return json.dumps(MANIFEST, indent=2)


def setup_steps() -> str:
    return STEPS.format(manifest=manifest_json())

"""OpenCode's events: how the plugin gets into one run, with the person's own settings kept."""

from __future__ import annotations

import json

import pytest

from atlasbridge.adapters.opencode_events import DOOR, PLUGIN, SETTINGS, with_events


def test_a_run_gets_the_plugin_and_the_door_and_nothing_else_changes() -> None:
    environ = with_events({"HOME": "/home/me"}, "/run/door.sock")
    assert json.loads(environ.pop(SETTINGS)) == {"plugin": [PLUGIN.as_uri()]}
    assert environ == {"HOME": "/home/me", DOOR: "/run/door.sock"}
    assert PLUGIN.is_file()


def test_settings_of_the_persons_own_environment_are_kept_with_ours_added() -> None:
    theirs = {"model": "lab/model", "plugin": ["file:///own.js"]}
    settings = json.loads(with_events({SETTINGS: json.dumps(theirs)}, "/d")[SETTINGS])
    assert settings == {"model": "lab/model", "plugin": ["file:///own.js", PLUGIN.as_uri()]}


@pytest.mark.parametrize("given", ["{not json", "[1]", '{"plugin": "one"}'])
def test_settings_that_cannot_be_understood_are_left_to_opencode(given: str) -> None:
    assert with_events({SETTINGS: given}, "/d") == {SETTINGS: given}

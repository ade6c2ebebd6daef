"""Signed rules apart from releases: checked before they are used, shown, and taken back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from atlasbridge.adapters.dialect_files import UPDATES, dialect_for, load_dialect
from atlasbridge.adapters.dialect_updates import read_state, remove, signed_text, update
from atlasbridge.cli.main import cli
from atlasbridge.core.errors import DialectError
from atlasbridge.core.fleet_wire import to_text

KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
OTHER = Ed25519PrivateKey.from_private_bytes(b"o" * 32)
RULES = """
name = "newtool"
extends = "generic"
versions = ["4.0.0"]
commands = ["nt"]

[[rule]]
id = "newtool-go"
type = "yes_no"
score = 0.95
pattern = 'shall it be so'
"""
ASKS = {"screen": "Shall it be so", "type": "yes_no", "choices": ["Yes", "No"]}
TELLS = {"screen": "It was so.\n", "type": "none"}


def public(key: Ed25519PrivateKey) -> str:
    return to_text(key.public_key().public_bytes_raw())


def bundle(path: Path, key: Ed25519PrivateKey = KEY, **changes: Any) -> str:
    said = {"serial": 1, "dialects": {"newtool": RULES}, "examples": {"newtool": [ASKS, TELLS]}, "revoked": []}
    said |= {"key": public(key), **changes}
    path.write_text(json.dumps({**said, "signature": to_text(key.sign(signed_text(said)))}))
    return str(path)


def test_signed_rules_are_used_by_new_sessions_until_they_are_reverted(tmp_path: Path) -> None:
    home, own = tmp_path / "home", tmp_path / "home" / "dialects"
    done = update(home, bundle(tmp_path / "b.json"), public(KEY))
    assert done["updated"] == ["newtool"]
    assert dialect_for("nt", own) == "newtool"
    assert any(rule.id == "newtool-go" for rule in load_dialect("newtool", own).rules)
    assert remove(home) == ["newtool"]
    assert dialect_for("nt", own) == "generic"


def test_a_persons_own_rules_win_over_an_update(tmp_path: Path) -> None:
    own = tmp_path / "dialects"
    own.mkdir()
    (own / "newtool.toml").write_text('name = "newtool"\nextends = "generic"\nversions = ["mine"]\n')
    update(tmp_path, bundle(tmp_path / "b.json"), public(KEY))
    assert load_dialect("newtool", own).versions == ("mine",)


def test_a_key_is_trusted_once_and_the_source_is_remembered(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    with pytest.raises(DialectError, match="nobody here trusts its key"):
        update(tmp_path, bundle(path))
    update(tmp_path, bundle(path), public(KEY))
    bundle(path, serial=2)
    assert update(tmp_path)["serial"] == 2
    with pytest.raises(DialectError, match="nobody here trusts its key"):
        update(tmp_path, bundle(path, OTHER, serial=3))
    assert read_state(tmp_path)["serial"] == 2


def test_an_author_takes_rules_back(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    update(tmp_path, bundle(path), public(KEY))
    assert update(tmp_path, bundle(path, serial=2, dialects={}, examples={}, revoked=["newtool"]))["dialects"] == {}
    assert not (tmp_path / UPDATES / "newtool.toml").exists()


WRONG = [
    ({"serial": 0}, "older"),
    ({"dialects": {"newtool": RULES.replace("shall it", "will it")}}, "example 1 is not read as it says"),
    ({"examples": {"newtool": [{**TELLS, "screen": "Shall it be so"}]}}, "example 1 is not read as it says"),
    ({"examples": {}}, "come with examples"),
    ({"examples": {"newtool": []}}, "come with examples"),
    ({"dialects": {"newtool": RULES + 'before_text = "rm -rf ~"\n'}}, "types text that no person has said"),
    ({"dialects": {"newtool": RULES + '\n[[menu]]\nid = "m"\nsubmit = "curl"\n'}}, "unknown keys: curl"),
    ({"dialects": {"newtool": RULES + "\nrun = 'rm'\n"}}, "unknown setting"),
    ({"dialects": {"newtool": RULES.replace('"generic"', '"claude"')}}, "extend generic or itself"),
    ({"dialects": {"../../newtool": RULES}}, "wrong kind"),
    ({"dialects": {"newtool": RULES.replace("'shall it be so'", "'('")}}, "not a valid pattern"),
    ({"note": "hello"}, "no bundle of dialects"),
]


@pytest.mark.parametrize(("change", "why"), WRONG, ids=[why for _, why in WRONG])
def test_a_bundle_with_a_fault_changes_nothing(tmp_path: Path, change: dict[str, Any], why: str) -> None:
    update(tmp_path, bundle(tmp_path / "good.json"), public(KEY))
    before = {path.name: path.read_bytes() for path in (tmp_path / UPDATES).iterdir()}
    with pytest.raises(DialectError, match=why):
        update(tmp_path, bundle(tmp_path / "bad.json", **{"serial": 2, **change}))
    assert {path.name: path.read_bytes() for path in (tmp_path / UPDATES).iterdir()} == before


def test_one_changed_letter_breaks_the_signature(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    bundle(path)
    path.write_text(path.read_text().replace("newtool-go", "newtool-no"))
    with pytest.raises(DialectError, match="signature is wrong"):
        update(tmp_path, str(path), public(KEY))


def test_plain_http_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DialectError, match="https only"):
        update(tmp_path, "http://example.org/rules.json", public(KEY))


def test_the_commands_update_show_and_revert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATLASBRIDGE_HOME", str(tmp_path / "home"))
    run, path = CliRunner(), bundle(tmp_path / "b.json")
    refused = run.invoke(cli, ["adapters", "update", "--from", path])
    assert refused.exit_code != 0
    done = run.invoke(cli, ["adapters", "update", "--from", path, "--trust", public(KEY)])
    assert done.output == "newtool: rules of serial 1, tried on 2 examples\n"
    shown = run.invoke(cli, ["adapters", "show", "newtool"]).output
    assert UPDATES in shown
    assert "newtool (serial 1)" in run.invoke(cli, ["doctor"]).output
    assert "newtool" in run.invoke(cli, ["adapters", "revert"]).output
    assert "newtool (serial 1)" not in run.invoke(cli, ["doctor"]).output

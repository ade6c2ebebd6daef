"""Signed rules apart from releases: checked before they are used, shown, and taken back."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
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
    ({"dialects": {"newtool": RULES + "# \ud800"}}, "no bundle of dialects"),  # a text that no file can hold
    ({"dialects": {"newtool": RULES + "x = " + "[" * 5000}}, "recursion"),
    ({"dialects": {"newtool": RULES + "x = " + "9" * 5000}}, "4300 digits"),
]


@pytest.mark.parametrize(("change", "why"), WRONG, ids=[why for _, why in WRONG])
def test_a_bundle_with_a_fault_changes_nothing(tmp_path: Path, change: dict[str, Any], why: str) -> None:
    update(tmp_path, bundle(tmp_path / "good.json"), public(KEY))
    before = {path.name: path.read_bytes() for path in (tmp_path / UPDATES).iterdir()}
    with pytest.raises(DialectError, match=why):
        update(tmp_path, bundle(tmp_path / "bad.json", **{"serial": 2, **change}))
    assert {path.name: path.read_bytes() for path in (tmp_path / UPDATES).iterdir()} == before


@pytest.mark.parametrize("text", ["[]", "1", '{"keys": 1}', '{"serial": "x"}', "[" * 100_000])
def test_a_state_that_this_program_did_not_write_is_named(tmp_path: Path, text: str) -> None:
    update(tmp_path, bundle(tmp_path / "b.json"), public(KEY))
    (tmp_path / UPDATES / "state.json").write_text(text)
    with pytest.raises(DialectError, match=r"state\.json"):
        read_state(tmp_path)


@pytest.mark.parametrize("source", ["/dev/zero", "a\0b", "/"])
def test_a_source_without_an_end_or_a_name_changes_nothing(tmp_path: Path, source: str) -> None:
    with pytest.raises(DialectError):
        update(tmp_path, source, public(KEY))


def test_one_changed_letter_breaks_the_signature(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    bundle(path)
    path.write_text(path.read_text().replace("newtool-go", "newtool-no"))
    with pytest.raises(DialectError, match="signature is wrong"):
        update(tmp_path, str(path), public(KEY))


def test_plain_http_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DialectError, match="https only"):
        update(tmp_path, "http://example.org/rules.json", public(KEY))


def certificate(folder: Path) -> Path:
    """A certificate of its own authority for 127.0.0.1, with its key, in one file."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    began = datetime(2020, 1, 1)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), began)
    made = made.not_valid_after(began + timedelta(days=36500))
    made = made.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=True)
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    pem = serialization.Encoding.PEM
    kept = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = folder / "server.pem"
    path.write_bytes(kept + made.sign(key, hashes.SHA256()).public_bytes(pem))
    return path


@contextmanager
def https(folder: Path) -> Iterator[str]:
    """A server of the files in this folder. `/away` redirects to the plain web."""

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/away":
                self.send_response(302)
                self.send_header("Location", "http://127.0.0.1:9/rules.json")
                self.end_headers()
                return
            page = folder / self.path[1:]
            data = page.read_bytes() if page.is_file() else b""
            self.send_response(200 if data else 404)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *said: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Pages)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_rules_are_fetched_over_https_from_a_server_whose_authority_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATLASBRIDGE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate(tmp_path)))
    path, run = tmp_path / "rules.json", CliRunner()
    bundle(path)
    with https(tmp_path) as address:
        done = run.invoke(cli, ["adapters", "update", "--from", f"{address}/rules.json", "--trust", public(KEY)])
        assert done.output == "newtool: rules of serial 1, tried on 2 examples\n"
        bundle(path, serial=2)
        again = run.invoke(cli, ["adapters", "update"])
        assert again.output == "newtool: rules of serial 2, tried on 2 examples\n"


@pytest.mark.parametrize(("page", "why"), [("away", "over https only"), ("none.json", "404")])
def test_a_page_that_is_not_there_or_leads_to_the_plain_web_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str, why: str
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate(tmp_path)))
    with https(tmp_path) as address, pytest.raises(DialectError, match=why):
        update(tmp_path, f"{address}/{page}", public(KEY))
    assert read_state(tmp_path)["serial"] == 0


def test_a_server_that_nobody_vouches_for_and_an_address_that_is_none_are_refused(tmp_path: Path) -> None:
    certificate(tmp_path)
    bundle(tmp_path / "rules.json")
    with https(tmp_path) as address, pytest.raises(DialectError, match="certificate verify failed"):
        update(tmp_path, f"{address}/rules.json", public(KEY))
    with pytest.raises(DialectError, match="cannot be read"):
        update(tmp_path, "https://[rules.json", public(KEY))


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

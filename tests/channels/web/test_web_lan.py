"""The page on the local network: only when asked for, only with TLS, with a login."""

from __future__ import annotations

import ssl
from pathlib import Path

import httpx
import pytest
from tests.support.fake_desk import FakeHub
from tests.support.sample_prompt import SECRET

API = "/api/v1"
NAMES = ["127.0.0.1", "box.local"]


async def lan_hub(tmp_path: Path) -> FakeHub:
    hub = FakeHub(tmp_path, lan=True, lan_host="127.0.0.1", lan_port=0, lan_names=NAMES)
    await hub.start()
    return hub


def lan_client(hub: FakeHub, tmp_path: Path) -> httpx.AsyncClient:
    """Trusts the certificate that the hub made, and nothing else."""
    trust = ssl.create_default_context(cafile=str(tmp_path / "web-cert.pem"))
    return httpx.AsyncClient(base_url=hub.channel._site.urls["lan"], verify=trust, timeout=60)


async def test_the_lan_is_off_unless_asked_for(hub: FakeHub) -> None:
    assert list(hub.channel._site.urls) == ["local"]
    assert len(hub.channel._listeners) == 1


async def test_a_certificate_is_made_and_the_password_lets_in(tmp_path: Path) -> None:
    hub = await lan_hub(tmp_path)
    hub.channel._site.access.set_password("correct horse battery")
    async with lan_client(hub, tmp_path) as client:
        assert (await client.get(f"{API}/prompts")).status_code == 401
        answer = await client.post(f"{API}/login", json={"password": "correct horse battery"})
        assert answer.status_code == 200
        client.headers["X-AtlasBridge-Key"] = answer.json()["key"]
        record = await hub.raise_prompt(hub.desk.add_session(), SECRET)
        typed = await client.post(f"{API}/prompts/{record.prompt_id}/reply", json={"value": "hunter2", "as_text": True})
        assert typed.status_code == 200
    assert (tmp_path / "web-key.pem").stat().st_mode & 0o777 == 0o600
    assert hub.answered[0][2] == "web:login"
    await hub.stop()


async def test_the_lan_speaks_nothing_but_tls(tmp_path: Path) -> None:
    hub = await lan_hub(tmp_path)
    plain = hub.channel._site.urls["lan"].replace("https:", "http:")
    async with httpx.AsyncClient() as client:
        with pytest.raises(httpx.TransportError):
            await client.get(f"{plain}{API}/health")
    await hub.stop()


async def test_a_cookie_of_the_lan_goes_over_tls_only(tmp_path: Path) -> None:
    hub = await lan_hub(tmp_path)
    async with lan_client(hub, tmp_path) as client:
        link = hub.channel._site.access.make_link("page", "admin")
        answer = await client.post(f"{API}/login", json={"link": link}, headers={"Host": "box.local"})
        assert "Secure" in answer.headers["set-cookie"]
        assert (await client.get(f"{API}/health", headers={"Host": "other.local"})).status_code == 421
    await hub.stop()

"""Clients that two generators make of the OpenAPI documents: they are whole, their types are checked, and they call."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.fleet import HubApi, new_machine

from atlasbridge.fleet.server import people
from atlasbridge.fleet.server.operations import OFFERED
from atlasbridge.web.api import render_openapi

pytestmark = pytest.mark.landing

TOOLS = Path(os.environ.get("ATLASBRIDGE_TOOLS") or Path(__file__).parents[2] / ".venv" / "tools")
GENERATORS = TOOLS / "openapi"
DOCUMENTS = {"hub": render_openapi(), "fleet": render_openapi(OFFERED, "AtlasBridge fleet server")}

TYPESCRIPT = """
import createClient from "openapi-fetch";
import type { paths as Hub } from "./hub.js";
import type { paths as Fleet } from "./fleet.js";
declare const process: { argv: string[] };
const [, , baseUrl, token] = process.argv;
export const hub = createClient<Hub>({ baseUrl });
export const typed = async (): Promise<string | undefined> => (await hub.GET("/prompts")).data?.prompts[0]?.type;
const fleet = createClient<Fleet>({ baseUrl, headers: { authorization: `Bearer ${token}` } });
const { data } = await fleet.GET("/prompts", { params: { query: { limit: 5 } } });
const constraints = data?.prompts[0]?.constraints;
const secret: boolean | undefined = constraints?.secret;
console.log(JSON.stringify([data?.total, secret, data?.prompts[0]?.type]));
"""
PYTHON = """
import json, sys
from fleet_client import AuthenticatedClient
from fleet_client.api.default import prompts
from fleet_client.models import FleetPrompts
with AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2]) as client:
    found = prompts.sync(client=client, limit=5)
assert isinstance(found, FleetPrompts), found
first = found.prompts[0]
print(json.dumps([found.total, first.constraints.secret, str(first.type_)]))
"""


async def run(*words: str | Path, cwd: Path) -> str:
    child = await asyncio.create_subprocess_exec(
        *map(str, words), cwd=cwd, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said = (await child.communicate())[0].decode()
    assert child.returncode == 0, said
    return said


async def asked(fleet_server: HubApi, root: Path) -> tuple[Any, str]:
    """A machine with an open prompt, and a token that can read it."""
    machine = await new_machine(fleet_server, root)
    machine.sit().ask()
    alice = await fleet_server.person("alice", "admin")
    await alice.sees(1)
    secret, _ = await people.add_token(fleet_server.database, "alice", "generated", "read", "test")
    return machine, secret


async def test_a_client_of_openapi_typescript_is_whole_and_calls(fleet_server: HubApi, root: Path) -> None:
    modules = GENERATORS / "node_modules"
    assert modules.is_dir(), "run tools/install-extras first"
    (root / "node_modules").symlink_to(modules)
    (root / "package.json").write_text('{"type": "module"}')
    for name, document in DOCUMENTS.items():
        (root / f"{name}.json").write_text(json.dumps(document))
        await run("node", modules / ".bin/openapi-typescript", f"{name}.json", "-o", f"{name}.d.ts", cwd=root)
        operations = [one for path in document["paths"].values() for one in path.values()]
        text = (root / f"{name}.d.ts").read_text()
        assert operations and all(f'operations["{one["operationId"]}"]' in text for one in operations)
    (root / "use.ts").write_text(TYPESCRIPT)
    options = ["--strict", "--module", "nodenext", "--moduleResolution", "nodenext", "--target", "es2022"]
    await run("node", modules / ".bin/tsc", *options, "use.ts", cwd=root)
    machine, token = await asked(fleet_server, root)
    assert json.loads(await run("node", "use.js", f"{fleet_server.url}/api/v1", token, cwd=root)) == [
        1,
        False,
        "yes_no",
    ]
    await machine.stop()


async def test_a_client_of_openapi_python_client_is_whole_and_calls(fleet_server: HubApi, root: Path) -> None:
    programs = GENERATORS / "bin"
    assert (programs / "openapi-python-client").exists(), "run tools/install-extras first"
    for name, document in DOCUMENTS.items():
        (root / f"{name}.json").write_text(json.dumps(document))
        (root / f"{name}.yml").write_text(f"package_name_override: {name}_client\npost_hooks: []\n")
        words = ["generate", "--path", f"{name}.json", "--config", f"{name}.yml", "--meta", "none", "--fail-on-warning"]
        await run(programs / "openapi-python-client", *words, "--output-path", f"{name}_client", cwd=root)
        made = [one.stem for one in (root / f"{name}_client" / "api").rglob("*.py") if one.stem != "__init__"]
        operations = [one for path in document["paths"].values() for one in path.values()]
        assert len(made) == len(operations)
        await run(programs / "mypy", "--ignore-missing-imports", f"{name}_client", cwd=root)
    (root / "use.py").write_text(PYTHON)
    machine, token = await asked(fleet_server, root)
    said = await run(programs / "python", "use.py", f"{fleet_server.url}/api/v1", token, cwd=root)
    assert json.loads(said) == [1, False, "yes_no"]
    await machine.stop()

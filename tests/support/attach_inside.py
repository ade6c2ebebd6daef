"""A tool that asks through every integration from inside its session, and then tries every way to answer by itself.

Run as `python attach_inside.py FOLDER`.  It waits for FOLDER/way.json, which says where the hub is and has a token that
the tool has found: a hub that does not know the session yet could not say its name.
Each child writes what it was told to FOLDER/MANNER.json, and what it was answered to FOLDER/MANNER.answer.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.support.self_answer import MANNERS, leave
from tests.support.waiting import written

from atlasbridge.client import Client, Refused


def write_whole(path: Path, value: object) -> None:
    """Anyone who waits for the file never sees half of it."""
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(value))
    draft.rename(path)


def try_to_answer(client: Client, prompt_id: str) -> str:
    try:
        return client.reply(prompt_id, "y")
    except Refused as refused:
        return refused.reason


def main(folder: Path, manner: str) -> None:
    way: dict[str, Any] = json.loads(written(folder / "way.json"))
    here = Client(way["home"], label=f"script {manner}")
    web = Client(label=f"program {manner}", url=way["url"], token=way["token"])
    with ThreadPoolExecutor() as pool:
        questions = [
            pool.submit(here.ask, f"Socket {manner}?", ttl_s=120),
            pool.submit(web.ask, f"Http {manner}?", ttl_s=120),
        ]
        own = [f"Socket {manner}?", f"Http {manner}?"]
        while len(found := [item for item in here.prompts() if item.excerpt in (*own, "Outside?")]) < 3:
            time.sleep(0.05)
        told = {
            f"{item.excerpt.split()[0]} by {name}": try_to_answer(client, item.prompt_id)
            for item in found
            for name, client in (("socket", here), ("http", web))
        }
        write_whole(folder / f"{manner}.json", told)
        write_whole(folder / f"{manner}.answer", [question.result().words for question in questions])


if __name__ == "__main__":
    if len(sys.argv) > 2:
        main(Path(sys.argv[1]), sys.argv[2])
    else:
        for each in MANNERS:
            leave(each, sys.argv[1], __file__)
        signal.pause()

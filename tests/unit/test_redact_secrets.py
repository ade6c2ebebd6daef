from __future__ import annotations

import pytest

from atlasbridge.core.prompt.redact import GONE, redact

SECRETS = [
    "sk-" + "a1B2" * 8,
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "xoxb-1234567890-abcdefghij",
    "AKIAIOSFODNN7EXAMPLE",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcDEF123",
    "123456789:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_what_looks_like_a_key_is_gone(secret: str) -> None:
    assert secret not in redact(f"use {secret} now?")


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

"""A question for a password, key, PIN, token or code is secret by its words, also where the answer is seen."""

from __future__ import annotations

import pytest

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core.detection.prompt_builder import prompt_of
from atlasbridge.core.prompt.model import Prompt
from atlasbridge.core.prompt.vocabulary import FOLDER
from atlasbridge.core.recognition.finding import Facts
from atlasbridge.core.recognition.meaning import asks_for_secret, secret_words
from atlasbridge.core.recognition.recognise import recognise
from atlasbridge.core.screen.screen import Screen
from atlasbridge.core.screen.view import View

SECRET = [
    *("API key:", "PIN:", "AWS Secret Access Key:", "AWS Secret Access Key [None]:", "Enter the code we sent"),
    *("Enter the code we sent to your phone:", "Token:", "GitHub personal access token:", "Enter your OpenAI API key:"),
    *("OTP:", "2FA code:", "Verification code:", "Recovery code:", "Passphrase:", "Password:", "Password for alice:"),
    *("Secret:", "Client secret:", "License key:", "Private key:", "Credentials:", "Enter PIN for card:"),
    *("Enter passphrase for key '/home/x/.ssh/id_ed25519':", "One-time password:", "Seed phrase:", "Access token:"),
    *("Enter the 6-digit code from your authenticator app:", "Enter your key:", "Webhook secret:", "Security code:"),
    *(
        "Paste your token here:",
        "Enter authentication code:",
        "Encryption key:",
        "Bot token:",
        "Code:",
        "CVV:",
        "New PIN:",
    ),
    *(
        "Paste code here if prompted >",
        "Please enter your pin:",
        "Backup code:",
        "AWS Session Token:",
        "Confirm password:",
    ),
    *("What is your password?", "What's the API key?", "Password for keyboard-user:", "Enter MFA code for arn:aws:x:"),
    *(
        "API-Schlüssel:",
        "Passwort:",
        "Bitte geben Sie den Code ein:",
        "Bestätigungscode:",
        "Mot de passe :",
        "Clé API :",
    ),
    *("Code de vérification :", "Contraseña:", "Clave secreta:", "Código de verificación:", "Senha:"),
    *(
        "Código de segurança:",
        "Chiave API:",
        "Codice di verifica:",
        "Пароль:",
        "Введите код подтверждения:",
        "Ключ API:",
    ),
    *(
        "パスワード:",
        "APIキー：",
        "確認コードを入力してください:",
        "密码：",
        "请输入验证码：",
        "密钥：",
        "비밀번호:",
        "API 키:",
    ),
    "인증번호를 입력하세요:",
]
PLAIN = [
    *("Enter the key to continue", "Press any key", "press any key to continue...", "Public key file:", "Token count:"),
    *("How many tokens", "How many tokens?", "zip code", "Zip code:", "Exit code", "Exit code:", "country code"),
    *(
        "Country code:",
        "keyboard layout",
        "Keyboard layout:",
        "code editor",
        "Which code editor?",
        "Max tokens [4096]:",
    ),
    *("Enter file in which to save the key (/home/ada/.ssh/id_ed25519):", "File to store the API token in [./token]:"),
    *("Where should we keep the client secret?", "Folder with your signing keys:", "Where is the service account key:"),
    *("Path to your private key:", "Private key file:", "Key name:", "Token name:", "Postal code:", "Error code:"),
    *("Which password hashing library should we use?", "How should tokens be stored?", "Primary key:", "Sort key:"),
    *("Key size (bits):", "Enter your zip code:", "What should the code do?", "Describe the code to write:", "Editor:"),
    *("Project name:", "Hit the Enter key", "Which version to pin?", "Press the arrow keys", "Token limit:", "Monkey:"),
    *("Öffentlicher Schlüssel:", "Code postal :", "Código postal:", "Codice postale:", "Почтовый код:", "公開鍵:"),
    *(
        "郵便番号:",
        "公钥：",
        "邮政编码：",
        "공개 키:",
        "우편번호:",
        "Drücken Sie eine Taste",
        "Barcode:",
        "Secret name:",
    ),
]
ECHOED = Facts(canonical=True, echo=True, reading=True)


def asked(question: str, facts: Facts = ECHOED) -> Prompt:
    screen = Screen(24, 100)
    screen.feed(f"Welcome.\r\n{question} ".encode())
    view = View.of(screen)
    found = recognise(view, facts, load_dialect("generic"))
    assert found is not None
    return prompt_of(found, view, [], b"", (), None)


@pytest.mark.parametrize("question", SECRET)
def test_a_question_for_a_secret_is_secret_although_it_echoes(question: str) -> None:
    prompt = asked(question)
    assert prompt.secret and prompt.safe_default == ""


@pytest.mark.parametrize("question", PLAIN)
def test_a_question_that_only_sounds_like_it_is_none(question: str) -> None:
    assert not asks_for_secret(question, load_dialect("generic"))
    assert not asked(question).secret


@pytest.mark.parametrize("question", ["Save the API key? [y/N]", "Overwrite the password file? (yes/no)"])
def test_a_choice_about_a_secret_is_no_secret(question: str) -> None:
    assert not asked(question).secret


def test_a_bare_marker_below_such_a_question_asks_for_it() -> None:
    assert asked("Paste your API key:\r\n>").secret
    assert not asked("Paste the text:\r\n>").secret


def test_each_language_has_its_words() -> None:
    assert {path.stem for path in FOLDER.glob("*.toml")} >= {"en", "de", "fr", "es", "pt", "it", "ru", "ja", "zh", "ko"}


def test_no_question_is_missed_for_want_of_a_sign() -> None:
    """The signs only spare work: without them the same questions are found."""
    dialect = load_dialect("generic")
    for signs, _, _ in secret_words():
        assert signs and all(sign == sign.lower() for sign in signs)
    assert all(asks_for_secret(question, dialect) for question in SECRET)

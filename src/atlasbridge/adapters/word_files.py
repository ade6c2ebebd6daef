"""Reads the packaged words of each language and lays them under a dialect's own.

What the words mean is decided in `core/recognition`; the files stand beside it.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from atlasbridge.core import recognition
from atlasbridge.core.recognition.dialect import Dialect, SecretWords
from atlasbridge.core.values import replace

FOLDER = Path(recognition.__file__).parent / "words"


def with_words(dialect: Dialect) -> Dialect:
    return replace(dialect, secret_words=dialect.secret_words + _secret_words())


@cache
def _secret_words() -> tuple[SecretWords, ...]:
    tables = [tomllib.loads(path.read_text("utf-8"))["secret"] for path in sorted(FOLDER.glob("*.toml"))]
    return tuple(SecretWords(**{name: tuple(table[name]) for name in SecretWords.__match_args__}) for table in tables)

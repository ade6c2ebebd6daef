"""The page in the reader's language: every text is in every catalogue, and none stands outside."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from atlasbridge.fleet import server
from atlasbridge.web import page_files, push

STATIC = Path(page_files.__file__).parent / "static"
FLEET = Path(str(server.__file__)).parent / "static"
LANGUAGES = ("de", "es", "ja")
MODULES = sorted([*STATIC.glob("*.js"), *FLEET.glob("*.js")])
PAGES = (STATIC / "index.html", FLEET / "admin.html")
SAID = re.compile(r'(?<![\w.])t\("((?:[^"\\]|\\.)*)"|Fault\("\w+", "([^"]+)"')
HOLES = re.compile(r"\{\w+\}")
COMMENT = re.compile(r"(?m)(?:^|\s)//[^\n]*$")
WORDS = re.compile(r"[A-Za-z]{2,} [a-z]{2,}|^[A-Z][a-z]{2,}[.:?…]?$")
# What is written for a browser, not for a person: names of classes, selectors, types, keys of the keyboard.
FOR_BROWSERS = re.compile(
    r"(cls|type|role|href|id|for|kind|d|viewBox|placeholder|\"content-type\"|\"Content-Type\"|key|name): $"
    r"|(closest|matches|querySelector|querySelectorAll|matchMedia|addEventListener|el|svg|getItem|setItem|removeItem)"
    r"(\?\.)?\($|(===|!==|case|in) $|\[$|\[\"\w+\", $|import .*$"
)
CLASSES = re.compile(r"(tag|bar|question|word|choice|item|button)( [a-z-]+)*")
KEYS = {
    *("Enter", "Escape", "Tab", "Backspace", "Delete", "Insert", "Home", "End", "Esc", "Del", "English", "Deutsch"),
    *("Notification", "Español", "AtlasBridge", "PgUp", "PgDn", "Segmenter", "Ctrl"),
}


def catalogue(tag: str) -> dict[str, str]:
    found: dict[str, str] = json.loads((STATIC / f"{tag}.json").read_text())
    return found


def said() -> set[str]:
    texts = {one or other for path in MODULES for one, other in SAID.findall(path.read_text())}
    marked = {one for page in PAGES for one in re.findall(r'data-(?:text|label)="([^"]*)"', page.read_text())}
    return texts | marked | set(push.TEXTS)  # the service worker translates what a push message says


@pytest.mark.parametrize("tag", LANGUAGES)
def test_every_text_of_the_page_is_in_every_catalogue_and_nothing_else_is(tag: str) -> None:
    known = catalogue(tag)
    assert sorted(said() - set(known)) == []
    assert sorted(set(known) - said()) == []


@pytest.mark.parametrize("tag", LANGUAGES)
def test_a_translation_has_the_same_holes_and_as_many_forms(tag: str) -> None:
    for english, other in catalogue(tag).items():
        assert set(HOLES.findall(english)) == set(HOLES.findall(other)), english
        assert english.count("|") == other.count("|"), english
        assert other.strip() and english.endswith(" ") <= (other != english.strip()), english


def outside(text: str) -> Iterator[str]:
    """Literals with words in them that no catalogue knows of."""
    code = SAID.sub("", COMMENT.sub("", text))
    for found in re.finditer(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`', code):
        words = re.sub(r"\$\{[^}]*\}", "", found[1] or found[2] or "").strip()
        before = code[max(0, found.start() - 60) : found.start()].rpartition("\n")[2]
        if words in KEYS or words.startswith(("atlasbridge ", "--", "(", "/", "#")) or FOR_BROWSERS.search(before):
            continue
        if WORDS.search(words) and not CLASSES.fullmatch(words):
            yield words


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_no_text_stands_outside_the_catalogues(path: Path) -> None:
    assert [words for words in outside(path.read_text()) if words not in said()] == []


def test_a_text_that_stands_outside_is_found() -> None:
    assert list(outside('el("p", {}, "Nothing was sent.")')) == ["Nothing was sent."]
    assert list(outside("toast(`${name} is away.`)")) == ["is away."]
    assert list(outside('el("p", { cls: "word bad" }, t("Nothing was sent."))')) == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_text_in_the_markup_of_a_page_is_marked_for_its_catalogue(path: Path) -> None:
    body = re.sub(r"(?s)<(svg|noscript|title).*?</\1>", "", path.read_text().partition("<body>")[2])
    loose = [
        text for tag, text in re.findall(r"<(\w[^>]*)>([^<]*[A-Za-z][^<]*)<", body) if f'data-text="{text}"' not in tag
    ]
    assert [text for text in loose if text != "AtlasBridge"] == []
    labels = re.findall(r'<[^>]*aria-label="([^"]*)"([^>]*)>', body)
    assert labels and all(f'data-label="{label}"' in rest for label, rest in labels)

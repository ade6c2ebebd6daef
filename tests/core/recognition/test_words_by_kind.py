"""Words are data: questions and answers in twelve languages, and what a plain yes or no means at a menu."""

from __future__ import annotations

import pytest
from tests.support.playbook import POLLING, READING, Playbook, Raised

from atlasbridge.core.prompt import vocabulary
from atlasbridge.core.prompt.answer import decide_answer, encode_answer
from atlasbridge.core.prompt.keys import Step
from atlasbridge.core.prompt.model import Answer, AnswerKind, Choice, Prompt, PromptType, Reject

KINDS = ("secret", "agree", "refuse", "always", "cancel", "continue", "choose", "default")


def menu(*labels: str, refuses: str = "", always: str = "") -> Prompt:
    choices = tuple(
        Choice(str(at), label, (Step(str(at).encode()),), refuses=str(at) in refuses, always=str(at) in always)
        for at, label in enumerate(labels, 1)
    )
    return Prompt(PromptType.TYPE_MULTIPLE_CHOICE, 0.9, "May it?", choices=choices, line_mode=False)


def chosen(prompt: Prompt, word: str) -> str:
    answer = decide_answer(prompt, word)
    return answer.value if isinstance(answer, Answer) else "refused"


@pytest.mark.parametrize("language", ["de", "fr", "es", "pt", "it", "ru", "ja", "zh", "ko", "pl", "tr"])
def test_every_language_has_every_kind(language: str) -> None:
    assert set(vocabulary.languages()[language]) >= set(KINDS)


QUESTIONS = [
    ("rm: reguläre leere Datei 'x' entfernen? ", "ja", "nein"),
    ("Möchten Sie fortfahren? ", "j", "n"),
    ("rm : supprimer 'x' du type fichier vide ? ", "oui", "non"),
    ("Voulez-vous continuer ? ", "o", "n"),
    ("rm: ¿borrar el fichero 'x'? ", "sí", "no"),
    ("rm: remover arquivo comum vazio 'x'? ", "sim", "não"),
    ("rm: rimuovere il file regolare vuoto 'x'? ", "sì", "no"),
    ("rm: удалить пустой обычный файл 'x'? ", "да", "нет"),
    ("rm: 通常の空ファイル 'x' を削除しますか? ", "はい", "いいえ"),
    ("rm：是否删除普通空文件 'x'？ ", "是", "否"),
    ("rm: 일반 빈 파일 'x'를 제거할까요? ", "네", "아니요"),
    ("rm: usunąć zwykły pusty plik 'x'? ", "tak", "nie"),
    ("Czy na pewno chcesz kontynuować? ", "tak", "nie"),
    ("rm: 'x' boş normal dosyası silinsin mi? ", "evet", "hayır"),
    ("Devam etmek istiyor musunuz? ", "evet", "hayır"),
]

LETTERS = [
    ("Czy kontynuować? [T/n] ", "t", "n"),
    ("Devam edilsin mi? [E/h] ", "e", "h"),
    ("Silinsin mi (e/H): ", "e", "h"),
    ("Jatketaanko? [K/e] ", "k", "e"),
    ("Kas jätkata? (j/E) ", "j", "e"),
    ("Продовжити? [Т/н] ", "т", "н"),
    ("Συνέχεια; [Ν/ο] ", "ν", "ο"),
]


@pytest.mark.parametrize(("asked", "yes", "no"), LETTERS)
def test_the_letters_of_a_language_are_typed_for_yes_and_no(asked: str, yes: str, no: str) -> None:
    play = Playbook(READING) >> asked >> 1.0 << Raised("yes_no")
    for word, key in (("yes", yes), ("no", no), (yes, yes), (no, no)):
        answer = decide_answer(play.prompt, word)
        assert isinstance(answer, Answer), answer
        assert b"".join(step.keys for step in encode_answer(play.prompt, answer)) == key.encode() + b"\r"


@pytest.mark.parametrize("asked", ["Keep or erase it? [K/e] ", "Kill or exit (k/E)? ", "Region (k/e): "])
def test_the_same_letters_of_english_words_are_choices(asked: str) -> None:
    Playbook(READING) >> asked >> 1.0 << Raised("multiple_choice")


@pytest.mark.parametrize(("asked", "yes", "no"), QUESTIONS)
def test_yes_or_no_is_asked_and_answered_in_the_persons_language(asked: str, yes: str, no: str) -> None:
    play = Playbook(READING) >> asked >> 1.0 << Raised("yes_no")
    for word, key in ((yes, b"y\r"), (no, b"n\r")):
        answer = decide_answer(play.prompt, word)
        assert isinstance(answer, Answer), answer
        assert b"".join(step.keys for step in encode_answer(play.prompt, answer)) == key


@pytest.mark.parametrize(
    "asked", ["Wie heißt die Datei? ", "Quel nom voulez-vous ? ", "何を作りますか? ", "要删除什么？ "]
)
def test_a_question_for_something_is_no_yes_or_no(asked: str) -> None:
    Playbook(READING) >> asked >> 1.0 << Raised("free_text")


@pytest.mark.parametrize(
    "asked", ["Installation abbrechen? ", "Annuler l'installation ? ", "インストールを中止しますか? "]
)
def test_a_timer_says_nothing_where_a_no_might_go_on(asked: str) -> None:
    play = Playbook(READING) >> asked >> 1.0 << Raised("yes_no")
    assert play.prompt.safe_default == ""


LISTS = [
    "1) Apfel\n2) Birne\nBitte wählen Sie: ",
    "1. pomme\n2. poire\nVotre choix : ",
    "1) manzana\n2) pera\nElija una opción: ",
    "1) maçã\n2) pera\nEscolha: ",
    "1) mela\n2) pera\nScegli: ",
    "1) яблоко\n2) груша\nВыберите номер: ",
    "1) りんご\n2) 梨\n番号を選択してください: ",
    "1) 苹果\n2) 梨\n请选择： ",
    "1) 사과\n2) 배\n번호를 선택하세요: ",
    # Long labels can be text, unless the line says that one of them is to be chosen.
    "1) Alle Dateien in diesem Ordner so lassen, wie sie sind\n2) Alle Dateien darin löschen\nBitte wählen Sie: ",
    "1) laisser tous les fichiers du dossier comme ils sont\n2) supprimer tous les fichiers du dossier\nVotre choix : ",
    "┌────────┐\n│ 1. add │\n│ 2. del │\n└────────┘\n>> ",
]


@pytest.mark.parametrize("asked", LISTS)
def test_a_numbered_list_is_chosen_from_in_any_language(asked: str) -> None:
    play = Playbook(READING) >> asked >> 1.0 << Raised("multiple_choice")
    assert [choice.value for choice in play.prompt.choices] == ["1", "2"]


@pytest.mark.parametrize(
    "asked", ["Eingabetaste drücken ", "Appuyez sur une touche ", "按任意键继续 ", "何かキーを押して "]
)
def test_enter_is_asked_for_in_any_language(asked: str) -> None:
    Playbook(READING) >> asked >> 1.0 << Raised("confirm_enter")


def test_an_editor_says_at_its_foot_which_keys_it_takes() -> None:
    question = "\x1b[22;1H\x1b[7mÉcrire l'espace modifié ? \x1b[m"
    drawn = f"\x1b[?1049h{question}\x1b[23;1H O Oui\x1b[24;1H N Non   ^C Annuler\x1b[22;27H"
    play = Playbook(POLLING) >> drawn >> 1.0 << Raised("yes_no")
    assert [step.keys for step in play.prompt.choices[0].steps] == [b"O"]


@pytest.mark.parametrize("word", ["n", "no", "deny", "reject", "nein", "нет", "いいえ"])
def test_a_no_takes_the_only_choice_that_refuses(word: str) -> None:
    assert chosen(menu("Allow once", "Always allow", "Reject", refuses="3", always="2"), word) == "3"


def test_of_several_refusals_the_plain_one_is_meant() -> None:
    assert chosen(menu("Approve", "Reject", "Reject and tell why", refuses="23"), "n") == "2"
    assert chosen(menu("Yes", "No", "Cancel", refuses="23"), "n") == "2"
    assert chosen(menu("Yes", "No, keep it", "No, and stop", refuses="23"), "n") == "refused"


@pytest.mark.parametrize("word", ["y", "yes", "ja", "oui", "да", "はい", "是", "예"])
def test_a_yes_is_for_this_once(word: str) -> None:
    assert chosen(menu("Yes, always", "Yes", "No", refuses="3", always="1"), word) == "2"
    assert chosen(menu("Always allow", "Deny", refuses="2", always="1"), word) == "refused"


def test_another_languages_letter_counts_only_where_the_menu_speaks_it() -> None:
    assert chosen(menu("Yes", "Skip it", refuses="2"), "s") == "refused"
    assert chosen(menu("Sí", "No", refuses="2"), "s") == "1"
    assert chosen(menu("Ja", "Nein", refuses="2"), "j") == "1"


def test_only_enter_is_asked_and_a_foreign_no_is_not_typed_before_it() -> None:
    prompt = Prompt(PromptType.TYPE_CONFIRM_ENTER, 0.9, "Press Enter to continue")
    assert isinstance(decide_answer(prompt, "nein"), Reject)
    assert decide_answer(prompt, "enter") == Answer(AnswerKind.ENTER)

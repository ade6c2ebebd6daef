"""A message with buttons before a chat gives it its own look: a question, its outcome, a notice, an offer. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from atlasbridge.channels import templates
from atlasbridge.channels.callback import Verb, encode_callback, encode_verb
from atlasbridge.channels.excerpt import (
    LAST_OUTPUT,
    Quote,
    Size,
    count_missing,
    fit_quotes,
    quotes_of,
    render_effects,
    warn_incomplete,
)
from atlasbridge.channels.language import t
from atlasbridge.channels.receipts import Outcome
from atlasbridge.channels.templates import Button, Role
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import short_id
from atlasbridge.core.prompt.model import Choice, PromptRecord
from atlasbridge.core.session.model import SessionRecord, session_name
from atlasbridge.core.values import frozen


@frozen
class Press:
    """A button, and what the service sends back when a person presses it."""

    label: str
    data: str
    role: Role = Role.SHOW


Rows = tuple[tuple[Press, ...], ...]


@frozen
class Card:
    """The parts in the order in which a person reads them. The quotes are the tool's own words; a chat cuts them to the
    room that it has. `asks` is a prompt whose own buttons belong below the card."""

    title: str = ""
    alert: str = ""  # what a notification shows, where that is not the title
    kind: str = ""
    header: str = ""
    text: str = ""
    quotes: tuple[Quote, ...] = ()
    warnings: tuple[str, ...] = ()
    listed: str = ""
    hint: str = ""
    last: str = ""
    asks: PromptRecord | None = None
    page: int = 0
    marks: int | None = None
    rows: Rows = ()

    def fitted(self, room: int, size: Size) -> tuple[list[Quote], list[str]]:
        """The quotes cut to the room, and what a person must know about them."""
        quotes = fit_quotes(list(self.quotes), room, size)
        return quotes, [note for note in (count_missing(quotes, t(templates.REST)), *self.warnings) if note]


def question(
    record: PromptRecord, session: SessionRecord, host: str, listed: Sequence[Choice], room: int, hint: str = ""
) -> Card:
    """`listed` are the choices that the text lists in `room` characters if their labels do not fit on buttons."""
    prompt = record.prompt
    return Card(
        title=templates.render_title(prompt, session),
        alert=templates.render_headline(prompt, session),
        kind=templates.render_kind(prompt, session),
        header=templates.render_header(prompt, session, host, titled=True),
        quotes=tuple(quotes_of(prompt, titled=True)),
        warnings=(warn_incomplete(prompt), render_effects(prompt)),
        listed="\n".join(templates.listed_choices(prompt, listed, room)),
        hint=hint or templates.render_hint(prompt, record.prompt_id),
        last=templates.render_deadline(record),
        asks=record,
    )


def short_question(record: PromptRecord, session: SessionRecord) -> Card:
    """For a service that refuses the whole message: it says that a prompt waits and where to read it."""
    title = f"❗ {t('{name} asks something', name=session_name(session))}"
    return Card(title=title, text=f"{t(templates.NOT_SHOWN)}\n{short_id(record.prompt_id)}")


def ended(record: PromptRecord, session: SessionRecord, outcome: Outcome, host: str) -> Card:
    """The same message after the prompt ended or was answered: the title tells the outcome; the buttons are gone."""
    again = Press(f"🔁 {t('Ask again')}", encode_verb(record, Verb.AGAIN))
    return Card(
        title=outcome.title,
        header=templates.render_header(record.prompt, session, host),
        quotes=tuple(quotes_of(record.prompt, titled=True)),
        warnings=(warn_incomplete(record.prompt), render_effects(record.prompt)),
        last=outcome.detail,
        rows=((again,),) if outcome.again else (),
    )


def notice(message: str, session: SessionRecord | None = None, host: str = "", rows: Rows = ()) -> Card:
    about = ""
    if session is not None:
        name = session_name(session)
        parts = (name, templates.tool_name(session), short_id(session.session_id), templates.host_name(session, host))
        about = " · ".join(part for part in parts if part)
    return Card(kind=about, text=escape_controls(message) or "…", rows=rows)


def quoted(title: str, text: str) -> Card:
    """The tool's text alone, such as its screen."""
    return Card(title=title, quotes=(Quote("", escape_controls(text).rstrip() or t("(empty)")),))


def asked_again(record: PromptRecord) -> Card:
    """The last output of an ambiguous prompt, with the same buttons again."""
    text = escape_controls(record.prompt.screen or record.prompt.excerpt).rstrip()[-LAST_OUTPUT:]
    return Card(title=t("Last output:"), quotes=(Quote("", text or t("(empty)")),), asks=record)


def button_of(record: PromptRecord, button: Button) -> Press:
    if button.role is Role.LATER:
        return Press(button.label, encode_verb(record, Verb.LATER, button.value), button.role)
    verb = {Role.SHOW: Verb.SHOW, Role.GRANT: Verb.GRANT, Role.ALWAYS: Verb.ALWAYS}.get(button.role, Verb.ANSWER)
    return Press(button.label, encode_callback(record, button.value, verb), button.role)


def grouped(record: PromptRecord) -> tuple[list[Press], list[Press], list[Press]]:
    """The prompt's buttons: answers, refusing answers, all others."""
    shown = [button_of(record, button) for button in templates.render_buttons(record.prompt)]
    answers = [one for one in shown if one.role in (Role.ANSWER, Role.ALWAYS)]
    refusing = [one for one in shown if one.role is Role.REFUSE]
    return answers, refusing, [one for one in shown if one not in answers and one not in refusing]


def to_snooze(record: PromptRecord) -> Rows:
    """Below a reminder, to be asked again later."""
    spans = (("In 15 minutes", "15"), ("In an hour", "60"))
    return (tuple(Press(f"💤 {t(span)}", encode_verb(record, Verb.LATER, minutes)) for span, minutes in spans),)


def to_choose(offered: Iterable[tuple[PromptRecord, SessionRecord]], message: str) -> Rows:
    """One button for each prompt that the text in this message can mean."""
    return tuple(
        (Press(templates.render_brief(record.prompt, session), encode_verb(record, Verb.THIS, message)),)
        for record, session in offered
    )


def to_grant(record: PromptRecord, buttons: Sequence[tuple[str, str]]) -> Rows:
    """Two buttons per row: the duration of the grant, and the way out."""
    shown = tuple(Press(label, encode_verb(record, Verb.GRANT, value)) for label, value in buttons)
    return tuple(shown[place : place + 2] for place in range(0, len(shown), 2))


def to_make_sure(record: PromptRecord, choice: Choice) -> Rows:
    """The second tap of an answer that is not asked again, and the way back to the first buttons."""
    sure = Press(templates.sure_label(choice), encode_callback(record, choice.value), Role.ANSWER)
    return (sure,), (Press(f"‹ {t(templates.BACK)}", encode_verb(record, Verb.PAGE, "0")),)

"""Answers for a form with several fields: `Shell: /bin/zsh; Group: staff`. Fields that are not named stay unchanged.

Before typing into a field, the host verifies that it has the focus, and afterwards that it shows the new value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from atlasbridge.core.escape import is_plain_line
from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import Stands, Step, When
from atlasbridge.core.values import frozen

_PAIR = lazy(r"(?:^|[;\n])(?P<label>[^:;=\n]{1,60}+)[:=]")


@frozen
class FormField:
    """`lead`: the keys to this field from the field that has the focus now. `below`: from any field above. `clear`
    empties it."""

    label: str
    lead: tuple[Step, ...] = ()
    below: tuple[Step, ...] = ()
    clear: tuple[Step, ...] = ()
    before: str = ""  # the text before its value in its row; "": unknown


def decide_form(fields: tuple[FormField, ...], text: str) -> str:
    """Returns one sentence if the text does not fill in this form; otherwise ""."""
    values = form_values(fields, text)
    names = ", ".join(field.label for field in fields)
    if not values:
        return f"This is a form; name its fields, such as `{fields[0].label}: …; {fields[-1].label}: …` (of {names})."
    unknown = [label for label in values if label not in {field.label for field in fields}]
    if unknown:
        return f"There is no field {unknown[0]!r}; it has {names}."
    return "" if all(map(is_plain_line, values.values())) else "A value must be one line without control characters."


def form_values(fields: tuple[FormField, ...], text: str) -> dict[str, str]:
    """Returns each pair of label and value. A label is spelled as in the form if it is unambiguous."""
    known = {field.label.lower(): field.label for field in fields}
    starts = [match for match in _PAIR.finditer(text) if match.start() == 0 or _meant(match["label"], known)]
    if not starts or text[: starts[0].start()].strip():
        return {}
    ends = [*(match.start() for match in starts[1:]), len(text)]
    return {
        _meant(match["label"], known) or match["label"].strip(): text[match.end() : end].strip()
        for match, end in zip(starts, ends, strict=True)
    }


def _meant(said: str, known: Mapping[str, str]) -> str:
    """The label, or the only label that begins like that."""
    low = said.strip().lower()
    begun = [label for name, label in known.items() if name.startswith(low)]
    return known.get(low) or (begun[0] if low and len(begun) == 1 else "")


def encode_form(fields: tuple[FormField, ...], text: str, ending: tuple[Step, ...]) -> tuple[Step, ...]:
    """Encodes a form from top to bottom: moves to a field, empties it, types the value and checks that it is shown;
    finally sends the form."""
    values = form_values(fields, text)
    steps: list[Step] = []
    for field in (field for field in fields if field.label in values):
        value = values[field.label]
        steps += [*(field.below if steps else field.lead), *field.clear]
        shown = Stands(f"{field.before}{value} ") if field.before else When.REDRAWN
        steps += [Step(value.encode(), shown)] if value else []
    return (*steps, *ending)


def decode_fields(
    data: Iterable[Mapping[str, Any]], decode: Callable[[Any], tuple[Step, ...]]
) -> tuple[FormField, ...]:
    return tuple(
        FormField(
            str(item["label"]), decode(item["lead"]), decode(item["below"]), decode(item["clear"]), str(item["before"])
        )
        for item in data
    )

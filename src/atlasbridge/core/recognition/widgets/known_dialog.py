"""A dialog of the tool's own, which one of its dialect's `[[menu]]` entries knows by what stands around it."""

from __future__ import annotations

from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.asked import dialog_above, dialog_top, question_above
from atlasbridge.core.recognition.dialect import Dialect, MenuRule, compiled
from atlasbridge.core.recognition.finding import Facts, Finding
from atlasbridge.core.recognition.screen_subject import shows_subject, subject_on_screen
from atlasbridge.core.recognition.widgets.list_finding import menu_finding
from atlasbridge.core.recognition.widgets.list_rows import Menu, find_numbered
from atlasbridge.core.recognition.widgets.pointed_list import find_menu
from atlasbridge.core.recognition.widgets.side_by_side import find_across
from atlasbridge.core.screen.frames import unframed
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace


def recognise_dialog(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """A menu that one of the dialect's entries knows by what stands around it."""
    if not dialect.menus:
        return None
    text = "\n".join(unframed(view.lines))
    rules = [rule for rule in dialect.menus if not rule.needs or compiled(rule.needs).search(text)]
    pointed = find_menu(view, dialect.pointers) if rules else None
    counted = find_numbered(view, dialect.pointers) if rules else None
    for rule in rules:
        listed = pointed or (counted if rule.unpointed else None)
        menu = find_across(view, rule.labels) if rule.labels else listed
        if menu is None or view.bottom() - menu.bottom > numbers.FOOT_ROWS or not _surrounds(view, menu, rule):
            continue
        asked = dialog_above(view, menu.top, rule)
        if asked is None:  # its head is not there, or it has none
            above = question_above(view, menu.top)
            asked = replace(above, whole=above.whole and not rule.top)
        if not asked.text:
            continue  # a dialog has words: this is what somebody writes into the input box
        found = menu_finding(view, menu, rule, asked, dialect)
        about = subject_on_screen(view, menu.top, asked, rule, dialect)
        clipped = found.whole and 0 < rule.most_rows <= menu.top - asked.row
        whole = found.whole and shows_subject(asked, rule, dialect) and not clipped
        about = replace(about, complete=False) if about and clipped else about
        return replace(
            found,
            own=dialect.idles,
            permission=rule.permission,
            deaf_s=rule.deaf_s,
            subject=about,
            whole=whole,
            clipped=clipped,
        )
    return None


def _surrounds(view: View, menu: Menu, rule: MenuRule) -> bool:
    top = max(0, menu.top - numbers.DIALOG_ROWS)
    head = dialog_top(view, menu.top, rule)
    top = min(top, head) if head >= 0 else top
    around = "\n".join(unframed(view.lines)[top : view.bottom() + 1])
    return not rule.needs or compiled(rule.needs).search(around) is not None

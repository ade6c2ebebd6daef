"""The keys that take a choice of a list: its digit, its hot key, or arrows that are seen to arrive; its text field."""

from __future__ import annotations

from atlasbridge.core.prompt.keys import ENTER, arrow, parse_keys
from atlasbridge.core.prompt.step import Only, Reach, Shows, Step, Until, When
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.dialect import MenuRule, compiled
from atlasbridge.core.recognition.widgets.list_rows import Menu
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace


def choose_steps(view: View, menu: Menu, at: int, rule: MenuRule) -> tuple[Step, ...]:
    item = menu.items[at]
    if rule.refuse_keys and rule.refuse and compiled(rule.refuse).search(item.label):
        return named_steps(view, rule.refuse_keys)
    if rule.choose == "hotkey":
        key = compiled(rule.hotkeys).search(item.label)
        if key:
            return (Step(b"\x1b" if key[1].lower() == "esc" else key[1].encode()),)
    if rule.choose in ("digit", "hotkey") and item.number:
        return (Step(item.number.encode()),)
    if rule.choose == "digit_enter" and item.number:
        return (Step(item.number.encode(), When.DRAINED), Step(ENTER))
    if rule.choose == "digit_shows" and item.number:
        return (Step(item.number.encode(), Shows(item.label[:60])), Step(ENTER))
    moves = move_steps(view, menu.current, at, rule.across, item.label, menu.upwards)
    labelled = bool(rule.labels and moves)  # such a row may be drawn anew, and its highlight begin again at the first
    if (menu.gaps and len(moves) > 0) or len(moves) > numbers.SEEN_MOVES or labelled:
        moves = (Step(moves[-1].keys, Reach(item.label[:60])),)
    moves = _seen_moves(menu, at, moves)
    if item.box.startswith("(") and not item.checked and menu.how != "mark":
        return (*moves, Step(b" ", When.DRAINED), Step(ENTER))  # a radio list: Enter takes the one that was marked
    if rule.follow and compiled(rule.follow).search(item.label):
        return (*moves, *named_steps(view, rule.follow_keys))
    return (*moves, Step(ENTER))


def _seen_moves(menu: Menu, at: int, moves: tuple[Step, ...]) -> tuple[Step, ...]:
    """Where a pointer shows it, each arrow is seen to have moved it: a spinner beside the list changes the screen, too,
    and a program that gets two arrows at once may take them for one key."""
    if menu.how != "pointer" or menu.current < 0 or menu.gaps or len(moves) < 2:
        return moves
    way = 1 if at > menu.current else -1
    between = range(menu.current + way, at, way)
    return (
        *(replace(step, until=Shows(menu.items[to].label[:60])) for step, to in zip(moves, between, strict=False)),
        moves[-1],
    )


def move_steps(
    view: View, current: int, target: int, across: bool, label: str, upwards: bool = False
) -> tuple[Step, ...]:
    """Arrows from where the highlight is, one by one, and a look whether it arrived before anything is taken."""
    distance = target - max(current, 0)
    shows = Shows(label[:60])
    if distance == 0:
        return () if current >= 0 else (Step(b"", shows),)  # a highlight that cannot be seen may be anywhere
    if upwards:
        distance = -distance
    forward, back = ("right", "left") if across else ("down", "up")
    key = arrow(forward if distance > 0 else back, view.application_cursor)
    return (*(Step(key, When.CHANGED),) * (abs(distance) - 1), Step(key, shows))


def toggle_steps(view: View, menu: Menu, at: int, rule: MenuRule) -> tuple[Step, ...]:
    """The last step marks the box, those before it lead there from the box above; see `answer._several`."""
    item = menu.items[at]
    if rule.toggle == "digit":
        return (Step((item.number or str(at + 1)).encode(), When.CHANGED),)
    start = max(menu.current, 0) if at == 0 else at - 1
    moves = move_steps(view, start, at, rule.across, item.label)
    return (*moves, *named_steps(view, rule.toggle, last=When.CHANGED))


def named_steps(view: View, keys: str, last: Until = When.AT_ONCE) -> tuple[Step, ...]:
    """Keys of a dialect: names or characters with blanks between them, each seen to work before the next.

    `down>Some_label` is the key again and again until that label is highlighted; after `right?Some_words` the rest is
    typed only where those words stand: elsewhere another question has come.
    """
    names = keys.split()
    out = []
    for at, word in enumerate(names, 1):
        word, only, words = word.partition("?")
        name, reaching, label = word.partition(">")
        pointing = name in ("up", "down", "left", "right")
        data = arrow(name, view.application_cursor) if pointing else parse_keys(name)
        until: Until = Reach(label.replace("_", " ")) if reaching else When.CHANGED if at < len(names) else last
        until = Only(words.replace("_", " ")) if only else until
        out.append(Step(data, until))
    return tuple(out)


def own_words_steps(view: View, menu: Menu, rule: MenuRule) -> tuple[Step, ...]:
    if not rule.text_choice:
        return ()
    if rule.text_typed:
        return (Step(b""),)
    if rule.text_submit and rule.text_reach:
        return named_steps(view, rule.text_reach)
    for at, item in enumerate(menu.items):
        if compiled(rule.text_choice).search(item.label):
            if rule.text_keys:
                moves = move_steps(view, menu.current, at, rule.across, item.label) if rule.choose != "hotkey" else ()
                return (*moves, *named_steps(view, rule.text_keys, last=When.REDRAWN))
            *lead, last = choose_steps(view, menu, at, rule)
            return (*lead, replace(last, until=When.REDRAWN))
    return named_steps(view, rule.text_reach)

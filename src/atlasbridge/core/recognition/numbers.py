"""Every number that recognition uses, with its reason. `python -m tests.figures weights` shows which cases need it."""

from __future__ import annotations

# Scores: how certain a finding is. A dialect's rule can set a score between them.
CERTAIN = 0.97  # the terminal itself says so: typed text is hidden
SURE = 0.9  # a widget with all its parts, or a question that names its answers
KNOWN_WORDS = 0.85  # words with one meaning; below this score, a line without the cursor asks nothing
LIKELY = 0.82  # it looks right, and one part is a good guess
GUESS = 0.72  # a line that ends like a question
LOOK = 0.62  # an unchanged screen: a person must look, and nothing is typed automatically
DOUBT = 0.5  # a line without any hint
SILENCE = 0.45  # no output at all

# How far a question extends.
QUESTION_ROWS = 14  # above a list: an explanation of half a screen, and nothing from before that
CONTEXT_ROWS = 8  # above a line that asks
ENOUGH = 2000  # characters of a question; a longer one is not whole
MARGIN = 8  # columns that a bar or box across the screen can leave free, both sides together
TAIL_ROWS = 10  # the region "tail" of a dialect's rule
FOOTER_ROWS = 5  # the region "footer" of a dialect's rule

# Lists.
EXPLAINED_ROWS = 6  # rows that explain one choice
ASKEW = 1  # columns by which a numbered choice of two rows can be out of line
BULLETS_TRIED = 4  # from the foot of the screen upwards: a page of bullets must not take longer than others
POINTERS_TRIED = 6  # the same of signs that are only pointers
ROOM = 3  # columns that a tool leaves free after a label that it wraps itself
GROUP_INDENT = 3  # the boxes of a group are a little to the right of the group's own box
SEEN_MOVES = 8  # arrows that are checked one by one; a choice further away is reached by repeating the key
FOOT_ROWS = 12  # below a list, where a tool explains keys and draws its input box
EDGE_ROWS = 6  # at the lower edge of the screen, where a line, a bar of buttons or a box asks
LAST_ROWS = 2  # a list that ends this near to the last row is at the end of the screen
HINT_ROWS = 6  # above a list, where it says how to answer
STATUS_ROWS = 1  # below a list: a status row of the tool, such as a spinner
ASKED_STATUS_ROWS = 3  # the same below a list right after a question, if the program hides its cursor
LONGEST_LABEL = 30  # of a choice that only a highlight or bullet marks; a longer text is prose
GAP_ROWS = 5  # between a list and the line that asks for one of its items

# A highlight as the only mark of a list: small lists only, because a file browser has a highlighted row as well.
LIT_ITEMS = 12
LIT_OTHER_ROWS = 6

# The input box of an AI CLI without a dialect.
BESIDE_BOX_ROWS = 4  # above or below it: status rows of the tool, or a list that possibly gets the keys

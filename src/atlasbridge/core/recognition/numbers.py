"""Every number that recognition goes by, with its reason; `python -m tests.figures weights` shows who needs each.

Read as `numbers.NAME`, so that there is one of each.
"""

from __future__ import annotations

# How sure a finding is.  What a rule of a dialect says of itself may lie between them.
CERTAIN = 0.97  # the terminal itself says so: what is typed is hidden
SURE = 0.9  # a widget with all its parts, or a question that names its answers
KNOWN_WORDS = 0.85  # words that mean one thing; below it a line that the cursor does not stand in asks nothing
LIKELY = 0.82  # it looks like it, and one part is a good guess
GUESS = 0.72  # a line that ends as questions end
LOOK = 0.62  # a screen at rest: a person must look, and nothing may be typed for it
DOUBT = 0.5  # a line that says nothing
SILENCE = 0.45  # not a word was written

# How far a question reaches.
QUESTION_ROWS = 14  # above a list: an explanation of a screen's half, and no more of what was said before
CONTEXT_ROWS = 8  # above a line that asks
ENOUGH = 2000  # characters of a question; what is longer is not whole
MARGIN = 8  # a bar or a box across the screen may leave so many columns free, both sides together
TAIL_ROWS = 10  # the region "tail" of a dialect's rule
FOOTER_ROWS = 5  # the region "footer" of a dialect's rule

# Lists.
EXPLAINED_ROWS = 6  # that explain one choice
ASKEW = 1  # columns by which a numbered choice that takes two rows may stand out of line
BULLETS_TRIED = 4  # from the foot of the screen upwards: what is said above has more of them
ROOM = 3  # columns that a tool leaves free behind a label that it wraps itself
GROUP_INDENT = 3  # boxes of a group stand a little to the right of the group's own
SEEN_MOVES = 8  # arrows that are seen one by one; a choice further away is reached by pressing the same key until it is
FOOT_ROWS = 12  # below a list, in which a tool explains keys and draws its input box
EDGE_ROWS = 6  # at the lower edge of the screen, in which a line, a bar of buttons or a box asks
LAST_ROWS = 2  # a list that ends so near to the last row stands at the end of the screen
HINT_ROWS = 6  # above a list, in which it says how it is answered
STATUS_ROWS = 1  # below a list: what a tool says of itself, such as a spinner's line
ASKED_STATUS_ROWS = 3  # the same below a list with a question right above it, of a program that hides its cursor
LONGEST_LABEL = 30  # of a choice that nothing but a highlight or a bullet marks; what is longer is prose
GAP_ROWS = 5  # between a list and the line that asks for one of it

# A highlight that is the only mark of a list: small ones only, a browser of files has a highlighted row as well.
LIT_ITEMS = 12
LIT_OTHER_ROWS = 6

# The input box of an AI CLI that no dialect knows.
BESIDE_BOX_ROWS = 4  # above or below it: what the tool says of itself, or a list that may have the keys

"""Every number that recognition goes by, with its reason; `lab ablate` halves each and tells which recordings need it.

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
TALL_ROWS = 200  # a dialog may show a whole script
ENOUGH = 2000  # characters of a question; what is longer is not whole
BAR_MARGIN = 4  # a bar across the screen may leave so many columns free on either side
OWN_WORDS = 2  # letters; a marker such as `>` has none, and what it asks stands above it
TAIL_ROWS = 10  # the region "tail" of a dialect's rule
FOOTER_ROWS = 5  # the region "footer" of a dialect's rule

# Lists.
MOST_ITEMS = 60  # rows of the largest terminals people use
EXPLAINED_ROWS = 6  # that explain one choice
ASKEW = 1  # columns by which a numbered choice that takes two rows may stand out of line
GROUP_INDENT = 3  # boxes of a group stand a little to the right of the group's own
DIALOG_ROWS = 30  # above a list, in which its dialog says what it is
SEEN_MOVES = 8  # arrows that are seen one by one; a choice further away is reached by pressing the same key until it is
FOOT_ROWS = 12  # below a list, in which a tool explains keys
HINT_ROWS = 6  # above a list, in which it says how boxes are switched
KEYS_ROWS = 4  # below a list: what its keys do, and the frame around it
STATUS_ROWS = 1  # below a list: what a tool says of itself, such as a spinner's line
ASKED_STATUS_ROWS = 3  # the same below a list with a question right above it, of a program that hides its cursor
BULLET_FOOT_ROWS = 2  # below a list with a bullet: a hint
LONGEST_BULLETED = 60  # characters of a choice; what is longer is prose
LIST_ROWS = 40  # above a line that asks for one of a list
GAP_ROWS = 5  # between a list and that line
CODED_ROWS = 6  # of a sentence that lists codes
LONGEST_SHELL = 120  # characters in front of a shell's mark: who, where

# A highlight that is the only mark of a list: small ones only, a browser of files has a highlighted row as well.
LIT_ITEMS = 12
LIT_OTHER_ROWS = 6
LONGEST_LIT = 30
LIT_BUTTONS = 4
FIELD_ROWS = 3  # from one field of a form to the next
BUTTON_ROWS = 6  # at the foot of a screen, in which a bar of buttons may stand
APART_ROWS = 6  # at the foot of a screen, in which a line may ask by itself

# The input box of an AI CLI that no dialect knows.
BOX_MARGIN = 4  # columns that it leaves free, both sides together
BOX_ROWS = 6  # of text in it
BELOW_BOX_ROWS = 4  # a status line or two
ABOVE_BOX_ROWS = 3  # between a list and the box: nobody can tell who gets the keys
INNER_ROWS = 8  # between the box of a command that runs and the input box: hints, what the tool says of itself

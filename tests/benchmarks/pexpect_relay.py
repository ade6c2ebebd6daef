"""pexpect's interact() as a relay.  A peer in the benchmark."""

from __future__ import annotations

import sys

import pexpect

if __name__ == "__main__":
    child = pexpect.spawn(sys.argv[1], sys.argv[2:], dimensions=(40, 120))
    child.interact(escape_character=None)
    child.close()
    sys.exit(child.exitstatus or 0)

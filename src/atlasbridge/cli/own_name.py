"""What to type for us in another terminal: the name alone only where the shell would find it."""

from __future__ import annotations

import os
import shutil
import sys


def own_name() -> str:
    if shutil.which("atlasbridge"):
        return "atlasbridge"
    beside = os.path.join(os.path.dirname(sys.executable), "atlasbridge")  # a host has the zygote's words
    return os.path.relpath(beside if os.access(beside, os.X_OK) else sys.argv[0])

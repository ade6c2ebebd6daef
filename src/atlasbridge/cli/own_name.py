"""What to type for us in another terminal: the name alone only where the shell would find it."""

from __future__ import annotations

import os
import shutil
import sys


def own_name() -> str:
    return "atlasbridge" if shutil.which("atlasbridge") else os.path.relpath(sys.argv[0])

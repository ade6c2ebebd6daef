"""What survives a power loss."""

from __future__ import annotations

import os
from pathlib import Path

from atlasbridge.core.system import OWN_FILE


def sync_folder(folder: Path) -> None:
    """New, renamed and removed names in `folder` are on the disk (where the system can say so)."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows opens no folder
        return
    descriptor = os.open(folder, os.O_RDONLY | OWN_FILE)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Identifies the current boot of this machine. The store decides what to do with it."""

from __future__ import annotations

import sys
from pathlib import Path

_COUNTER = r"SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters"


def boot_id() -> str:
    """An id that changes with every boot; "" if the system has none."""
    if sys.platform == "win32":
        return _count_of_boots()
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        import subprocess  # where there is no /proc

        done = subprocess.run(["sysctl", "-n", "kern.boottime"], capture_output=True, text=True, check=False)
        return done.stdout.strip()


def _count_of_boots() -> str:
    """Windows has a boot counter."""
    if sys.platform != "win32":
        return ""
    import winreg

    try:
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, _COUNTER) as key:
            return str(winreg.QueryValueEx(key, "BootId")[0])
    except OSError:
        return ""

"""What differs between operating systems: terminals, the Windows console, and here the id of a boot."""

from __future__ import annotations

import sys

_COUNTER = r"SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters"


def boot_id() -> str:
    """An id that changes with every boot; "" if the system has none."""
    if sys.platform == "win32":
        return _count_of_boots()
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
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

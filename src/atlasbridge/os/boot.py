"""What tells one boot of this machine from another; what is done with it is the store's business."""

from __future__ import annotations

from pathlib import Path


def boot_id() -> str:
    """What tells one boot of this machine from another."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        import subprocess  # where there is no /proc

        done = subprocess.run(["sysctl", "-n", "kern.boottime"], capture_output=True, text=True, check=False)
        return done.stdout.strip()

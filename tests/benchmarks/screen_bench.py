"""How fast the screen takes output (MB per processor second) and how long a look of the waiting probe takes.

Run it: `python tests/benchmarks/screen_bench.py [megabytes]`.  It prints figures and judges none of them.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

from atlasbridge.core.screen.screen import Screen

_ROWS, _COLS, _CHUNK = 40, 120, 4095
_LAUNCH = "import fcntl,termios,os,sys; fcntl.ioctl(0,termios.TIOCSCTTY,0); os.execvp(sys.argv[1],sys.argv[1:])"


def redraws() -> bytes:
    """Frames of a full-screen tool: a box, styled text, a spinner, a synchronised update."""
    frames = []
    for number in range(50):
        frame = ["\x1b[?2026h\x1b[H"]
        for row in range(1, 30):
            frame.append(f"\x1b[{row};1H\x1b[38;5;246m│\x1b[39m \x1b[1mstep {row}\x1b[22m of {number} done ")
            frame.append(f"\x1b[38;2;{row};90;{number}m{'━' * (row + number % 7)}\x1b[39m\x1b[K")
        frame.append(f"\x1b[31;3H\x1b[36m{'⠋⠙⠹⠸'[number % 4]}\x1b[m Thinking… ({number}s)\x1b[?2026l")
        frames.append("".join(frame))
    return "".join(frames).encode()


def logs() -> bytes:
    return b"".join(
        b"2026-01-01 12:00:%02d INFO worker: item %d took %d ms\r\n" % (n % 60, n, n % 997) for n in range(5000)
    )


def colours() -> bytes:
    line = b"\x1b[32m%d\x1b[0m \x1b[1;34mfile%d.py\x1b[0m: \x1b[38;5;%dmwarning\x1b[39m something happened\r\n"
    return b"".join(line % (n, n, n % 256) for n in range(5000))


def cjk() -> bytes:
    return "日本語のテキストと ascii ✓ → │ 混ぜたもの\r\n".encode() * 5000


def measure_screen(name: str, sample: bytes, size: int, history_lines: int = 0) -> None:
    data = sample * (size // len(sample) + 1)
    speeds = []
    for _ in range(3):
        screen, start = Screen(_ROWS, _COLS, history_lines), time.process_time()
        for at in range(0, len(data), _CHUNK):
            screen.feed(data[at : at + _CHUNK])
        speeds.append(len(data) / (time.process_time() - start) / 1e6)
    print(f"screen  {name:28} {statistics.median(speeds):7.1f} MB/s")


def measure_probe(name: str, *argv: str) -> None:
    from atlasbridge.os.tty.linux import LinuxProbe

    master, slave = os.openpty()
    command = [sys.executable, "-S", "-c", _LAUNCH, *argv]
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    time.sleep(1.0)
    probe = LinuxProbe(master, process.pid)
    answer = probe.look(1.0, None)
    cold, hot = [], []
    for _ in range(20):
        time.sleep(0.05)
        cold.append(_timed(probe))
        hot += [_timed(probe) for _ in range(5)]
    process.kill()
    process.wait()
    os.close(master)
    figures = f"{statistics.median(cold):6.0f} us after a pause {statistics.median(hot):6.0f} us hot"
    print(f"probe   {name:12} {answer.state:8} {figures}")


def _timed(probe: object) -> float:
    start = time.thread_time()
    probe.look(1.0, None)  # type: ignore[attr-defined]
    return (time.thread_time() - start) * 1e6


def main() -> None:
    size = int(float(sys.argv[1] if len(sys.argv) > 1 else "3") * 1e6)
    measure_screen("redraws", redraws(), size)
    measure_screen("log flood", logs(), size)
    measure_screen("log flood, 1000 lines kept", logs(), size, 1000)
    measure_screen("colour", colours(), size)
    measure_screen("cjk", cjk(), size)
    measure_screen("one endless line", b"x" * 65536, size)
    if sys.platform == "linux":
        measure_probe("cat", "cat")
        measure_probe("sleep", "sleep", "60")
        measure_probe("pipeline", "sh", "-c", "cat | sort")
        measure_probe("select loop", sys.executable, "-S", "-c", "import select; select.select([0], [], [])")
        measure_probe("script", "script", "-qc", "cat", "/dev/null")


if __name__ == "__main__":
    main()

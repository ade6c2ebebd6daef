"""What a user with one to five sessions gets from the zygote, and what it costs: everything beside the hub is counted.

`python -m tests.benchmarks.few_sessions` prints the table.  With and without the zygote in turns, each round in a
fresh home with a running hub: the first `run true`, the next ones, then five attached sessions that ask a question.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import ExitStack
from functools import partial

from tests.benchmarks.measure import Series, cpu_s, pss_kb
from tests.benchmarks.product import ATLAS, Product, wait
from tests.support.sessions import host_pids
from tests.support.terminal import Terminal
from tests.support.zygotes import SWITCH, zygotes

WITH, WITHOUT = "with the zygote", "without it"
MOST = 5
_NEXT = 5
_SETTLING_S = 1.5
_ASKS = ["sh", "-c", "printf 'name: '; read x"]
WHY = (
    "The zygote stays because it pays from the second session on. Its start costs as much processor time as one "
    "session without it; every later session starts several times faster and leaves the processor to the tool. "
    "A user with one session pays with 9 MB more, a user with five saves 18 MB."
)


def measure(rounds: int) -> list[Series]:
    """One series for each figure, by `WITH` and `WITHOUT`."""
    first, later = (Series(f"the {which} `run true`", "ms", "lower") for which in ("first", "next"))
    spent = Series("processor time of all that the first session starts", "ms", "lower")
    host = Series("processor time of a host until its question waits", "ms", "lower")
    memory = {count: Series(f"{count} attached, everything beside the hub", "MB", "lower") for count in (1, MOST)}
    figures = [first, later, spent, host, *memory.values()]
    for number in range(rounds):
        for series in figures:
            series.round = number
        for name, switch in ((WITH, "1"), (WITHOUT, "0")):
            with Product(warm=False, environ={SWITCH: switch}) as product:
                first.add(name, _wall_ms([ATLAS, "run", "true"], product.env))
                if switch == "1":
                    zygote = wait(partial(zygotes, product.home))[0]
                    time.sleep(_SETTLING_S)
                    spent.add(name, cpu_s(zygote) * 1e3)
                for later.round in range(number * _NEXT, (number + 1) * _NEXT):
                    later.add(name, _wall_ms([ATLAS, "run", "true"], product.env))
                    time.sleep(0.3)  # the next spare is there, as it is for a person
                _attach(product, name, memory, host)
    return figures


def _wall_ms(argv: list[str], env: dict[str, str]) -> float:
    """A whole run in a terminal.  Nothing that it leaves behind is ended, unlike by the C instrument."""
    begun = time.perf_counter()
    pid, master = os.forkpty()
    if pid == 0:
        os.execve(argv[0], argv, env)
    try:
        while os.read(master, 65536):
            pass
    except OSError:
        pass  # the terminal's last user has left
    os.waitpid(pid, 0)
    took_s = time.perf_counter() - begun
    os.close(master)
    return took_s * 1e3


def _attach(product: Product, name: str, memory: dict[int, Series], host: Series) -> None:
    with ExitStack() as stack:
        for count in range(1, MOST + 1):
            terminal = stack.enter_context(Terminal([ATLAS, "run", "--", *_ASKS], env=product.env))
            terminal.wait_for("name:")
            wait(partial(_hosts, product, count))
            time.sleep(_SETTLING_S)
            if count in memory:
                memory[count].add(name, sum(map(pss_kb, product.beside_the_hub())) / 1024)
        host.add(name, sum(map(cpu_s, host_pids(product.home))) * 1e3 / MOST)


def _hosts(product: Product, count: int) -> bool:
    return len(host_pids(product.home)) == count


def table(figures: list[Series]) -> list[str]:
    lines = [f"| one to five sessions, Python {sys.version_info.major}.{sys.version_info.minor} | {WITH} | {WITHOUT} |"]
    lines.append("|---|---|---|")
    for series in figures:
        shown = [f"{series.median(name):.1f}" if name in series.samples else "" for name in (WITH, WITHOUT)]
        lines.append(f"| {series.title}, {series.unit} | {shown[0]} | {shown[1]} |")
    return lines


if __name__ == "__main__":
    for name in [name for name in os.environ if name.startswith("ATLASBRIDGE_")]:
        del os.environ[name]
    sys.stdout.write("\n".join(table(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 5))) + "\n")

"""`python -m tests.torture [NAME [OPTIONS]]`: one long attack, or all of them one after the other."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import time

import tests.torture


def main(arguments: list[str]) -> int:
    names = sorted(module.name for module in pkgutil.iter_modules(tests.torture.__path__) if module.name[0] != "_")
    if arguments and arguments[0] not in names:
        print(f"there is: {', '.join(names)}")
        return 2
    chosen, options = (arguments[:1], arguments[1:]) if arguments else (names, [])
    failed = []
    for name in chosen:
        begin = time.monotonic()
        status = importlib.import_module(f"tests.torture.{name}").main(options)
        print(f"{name}: {'FAILED' if status else 'held'} after {time.monotonic() - begin:.0f} s", flush=True)
        failed += [name] if status else []
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`python -m tests.torture [NAME [OPTIONS]]`: one long attack, or all of them one after the other.

An attack is a module with `main`; the arguments of `main` are the attack's options.  A promise broke where it returns
anything but 0, or where an assertion of its fails.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import pkgutil
import sys
import time
from collections.abc import Callable
from typing import Any

import tests.torture


def main(arguments: list[str]) -> int:
    names = sorted(module.name for module in pkgutil.iter_modules(tests.torture.__path__) if module.name[0] != "_")
    if arguments and arguments[0] not in names:
        print(f"there is: {', '.join(names)}")
        return 2
    chosen, words = (arguments[:1], arguments[1:]) if arguments else (names, [])
    failed = []
    for name in chosen:
        attack = importlib.import_module(f"tests.torture.{name}").main
        options = options_of(attack, name, words)
        begin = time.monotonic()
        try:
            status = attack(**options)
        except AssertionError as error:
            print(f"{name}: FAILED: {error}")
            status = 1
        print(f"{name}: {'FAILED' if status else 'held'} after {time.monotonic() - begin:.0f} s", flush=True)
        failed += [name] if status else []
    return 1 if failed else 0


def options_of(attack: Callable[..., int], name: str, words: list[str]) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog=name, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    for one in inspect.signature(attack).parameters.values():
        kind = {"action": "store_true"} if one.default is False else {"type": type(one.default), "default": one.default}
        parser.add_argument(f"--{one.name.replace('_', '-')}", help=" ", **kind)
    return vars(parser.parse_args(words))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

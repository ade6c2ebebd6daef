"""Loads an adapter that a person keeps in the home folder: a file is enough, no package has to be installed.

Only a file that nobody else can change is run.
"""

from __future__ import annotations

import os
import stat
import sys
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

from atlasbridge.core.errors import AdapterError


def load_module(path: str) -> ModuleType:
    """The module in this file; AdapterError says what is wrong with it."""
    check_owner(path)
    name = f"atlasbridge_own_{os.path.basename(os.path.dirname(path))}_{os.path.basename(path).removesuffix('.py')}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise AdapterError(f"{path} is no Python file", "give it a name that ends in .py")
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses of the file look for their module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the boundary to another's file: it may fail in any way
        del sys.modules[name]
        raise AdapterError(
            f"{path} cannot be loaded: {type(error).__name__}: {error}", "mend it, or remove it"
        ) from error
    return module


def check_owner(path: str) -> None:
    """What somebody else could have written is not run."""
    for place in (path, os.path.dirname(path)):
        try:
            found = os.stat(place)
        except OSError as error:
            raise AdapterError(f"{place} cannot be read: {error.strerror}", "check the file, or remove it") from None
        if found.st_uid not in (os.getuid(), 0) or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise AdapterError(
                f"{place} can be changed by others: it is not run", f"chown it to you; chmod go-w {place}"
            )

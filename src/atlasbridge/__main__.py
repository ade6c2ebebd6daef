"""The command `atlasbridge`. `run`, `attach` and `mcp` have a fast path, so that a tool starts as fast
as without us."""

from __future__ import annotations

import io
import os
import sys


def main() -> None:
    _leave_folder_out()
    _open_what_is_closed()
    _say_what_can_be_said()
    words = sys.argv[1:]
    if words and words[0] in ("run", "attach", "mcp"):
        _leave(_run_light_command(words[0], words[1:]))
    if words == ["--version"]:
        from atlasbridge import __version__

        _leave(_print(f"atlasbridge {__version__}"))
    if words == ["status", "--line"]:
        _overview(line=True)
        _leave(0)
    if words == [] and "_ATLASBRIDGE_COMPLETE" not in os.environ:
        _overview()
        _leave(0)
    if words in (["--help"], ["-h"]) and "_ATLASBRIDGE_COMPLETE" not in os.environ:
        from atlasbridge.cli.catalogue import render_help
        from atlasbridge.cli.columns import fit, terminal_cols

        _leave(_print(fit(render_help(), terminal_cols())))
    from atlasbridge.cli.main import main as full_main

    _leave(full_main())


def _leave_folder_out() -> None:
    """Remove the current folder from the path: `python -m atlasbridge` in a project would import that project's
    `socket.py`."""
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if __name__ == "__main__" and not sys.flags.safe_path and sys.path[:1] != [ours]:
        del sys.path[:1]


def _open_what_is_closed() -> None:
    """Reopen a standard stream that the caller has closed (`2>&-`): otherwise one of our own files would get its
    number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number, which is this one
            setattr(sys, name, os.fdopen(number, "w" if number else "r"))


def _say_what_can_be_said() -> None:
    """Replace characters that a terminal, file or pipe cannot encode, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            choose_letters(stream, os.name == "nt", "PYTHONIOENCODING" in os.environ)


def choose_letters(stream: io.TextIOWrapper, on_windows: bool, chosen: bool) -> None:
    """Use UTF-8 for pipes and files on Windows: the legacy encoding lacks most of our characters, and Python's error
    handler there fails for unencodable ones. `chosen`: the person has set an encoding."""
    if stream.errors == "strict" or (on_windows and stream.errors == "surrogateescape"):
        legacy = on_windows and not stream.isatty() and not chosen
        stream.reconfigure(encoding="utf-8" if legacy else None, errors="replace")


def _overview(line: bool = False) -> None:
    """Print the open prompts and running sessions."""
    from atlasbridge.cli.overview import print_line, print_overview

    (print_line if line else print_overview)()


def _run_light_command(name: str, words: list[str]) -> int:
    from atlasbridge.cli.run import LIGHT_COMMANDS

    return LIGHT_COMMANDS[name][0](words)


def _leave(status: int) -> None:
    """Exit without the interpreter's cleanup, because nothing is left to clean up."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        pass  # the reader of our output is gone
    except OSError as error:
        status = _report_unwritten(error)
    os._exit(status)


def _print(text: str) -> int:
    try:
        sys.stdout.write(text + "\n")
    except BrokenPipeError:
        pass
    except OSError as error:
        return _report_unwritten(error)
    return 0


def _report_unwritten(error: OSError) -> int:
    """A full disk, for example: the output is not complete, and a script must see that."""
    try:
        sys.stderr.write(f"atlasbridge: the output cannot be written: {error.strerror}\n")
        sys.stderr.flush()
    except OSError:
        pass  # nothing can be reported
    return 1


if __name__ == "__main__":
    main()

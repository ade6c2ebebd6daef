"""`import winpty` in a process of its own: the stand-in that the tests of the pool use, too."""

from tests.support.fake_winpty import PtyProcess, WinptyError

__all__ = ["PtyProcess", "WinptyError"]

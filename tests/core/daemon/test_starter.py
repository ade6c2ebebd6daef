"""Starting a hub: from a process that holds very many descriptors, and one that takes too long."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.support.waiting import written

from atlasbridge.core.daemon import request
from atlasbridge.core.daemon.request import ensure_hub, read_verdict
from atlasbridge.core.errors import HubUnavailable
from atlasbridge.core.home import Home

SAYS_NOTHING = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"


def test_a_hubs_verdict_is_read_from_a_descriptor_above_those_that_select_knows() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    reader, writer = os.pipe()
    high = fcntl.fcntl(reader, fcntl.F_DUPFD_CLOEXEC, 1500)
    try:
        assert read_verdict(high, 0.01) == {}, "nothing was said yet"
        os.write(writer, b'{"ok": true}\n')
        assert read_verdict(high, 5.0) == {"ok": True}
    finally:
        for fd in (reader, writer, high):
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("pipes_can_be_waited_for", [True, False])
def test_a_hub_that_says_nothing_in_time_is_given_up_and_not_waited_for_until_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pipes_can_be_waited_for: bool
) -> None:
    told = tmp_path / "pid"
    monkeypatch.setattr(request, "own_python", lambda *_: (sys.executable, "-c", SAYS_NOTHING, str(told)))
    if not pipes_can_be_waited_for:
        monkeypatch.setattr(request, "select", SimpleNamespace())  # not the module itself: threads of others poll
    late = pytest.raises(HubUnavailable, match="did not start in time")
    with tempfile.TemporaryDirectory(prefix="ab") as home, late:
        ensure_hub(Home(Path(home)), timeout_s=0.3)
    pid = int(written(told))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)

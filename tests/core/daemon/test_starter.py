"""Starting a hub from a process that holds very many descriptors."""

from __future__ import annotations

import fcntl
import os
import resource

from atlasbridge.core.daemon.starter import read_verdict


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

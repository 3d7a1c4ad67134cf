"""Lines that tests run in a shell end with them."""

from __future__ import annotations

import os
import select
from pathlib import Path

import pytest

from tests.e2e.runbooks import run


@pytest.mark.real_time(60)
async def test_a_line_that_takes_too_long_is_killed_with_all_that_it_started(
    tmp_path: Path,
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(TimeoutError):
            await run(f"exec 9>{pipe}; echo begun >&9; sleep 300 & wait", tmp_path / "none", 2.0)
        assert os.read(reader, 100) == b"begun\n"
        ended, _, _ = select.select([reader], [], [], 10)
        assert ended, "a process still has the pipe"
        assert os.read(reader, 100) == b""
    finally:
        os.close(reader)

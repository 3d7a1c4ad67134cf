"""The image for pods of tests: what the archive has, and what its program does."""

from __future__ import annotations

import hashlib
import io
import json
import signal
import subprocess
import tarfile
import time
from pathlib import Path

import pytest
from kube_in_process.real.nodes import images


def test_the_archive_names_the_image_and_its_layer(tmp_path: Path) -> None:
    busybox = tmp_path / "busybox"
    busybox.write_bytes(b"a program")
    images.write_image(tmp_path / "image.tar", busybox)
    with tarfile.open(tmp_path / "image.tar") as archive:
        read = {member.name: archive.extractfile(member) for member in archive.getmembers()}
        data = {name: file.read() for name, file in read.items() if file is not None}
    (manifest,) = json.loads(data["manifest.json"])
    assert manifest["RepoTags"] == [images.IMAGE]
    config, layer = json.loads(data[manifest["Config"]]), data[manifest["Layers"][0]]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    with tarfile.open(fileobj=io.BytesIO(layer)) as files:
        assert files.getmember("bin/sh").linkname == "busybox"
        assert files.getmember("play").mode & 0o111


def play(tmp_path: Path, *arguments: str) -> subprocess.Popen[bytes]:
    script = tmp_path / "play"
    script.write_bytes(images._SCRIPT)
    return subprocess.Popen(("sh", str(script), *arguments), start_new_session=True)


def test_the_program_runs_for_some_seconds_and_ends_with_a_code(tmp_path: Path) -> None:
    assert play(tmp_path, "0", "7").wait(10) == 7
    assert play(tmp_path, "0").wait(10) == 0


@pytest.mark.parametrize(("how", "ends"), [("", True), ("deaf", False)])
def test_the_program_ends_at_sigterm_unless_it_is_deaf(
    tmp_path: Path, how: str, ends: bool
) -> None:
    with play(tmp_path, how) as program:
        try:
            assert _caught(program.pid) == ("trap" if ends else "ignored")
            program.terminate()
            if ends:
                assert program.wait(10) == 0
            else:
                assert program.poll() is None
        finally:
            subprocess.run(("pkill", "-KILL", "-s", str(program.pid)), check=False)


def _caught(pid: int) -> str:
    """What a process does at SIGTERM, once the script has said it."""
    bit = 1 << (signal.SIGTERM - 1)
    end = time.monotonic() + 10
    while time.monotonic() < end:
        status = Path(f"/proc/{pid}/status").read_text()
        sets = dict(line.split(":\t") for line in status.splitlines() if line.startswith("Sig"))
        if int(sets["SigIgn"], 16) & bit:
            return "ignored"
        if int(sets["SigCgt"], 16) & bit:
            return "trap"
    return "default"

"""The files of a release."""

from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
from pathlib import Path

from release.__main__ import CHART, list_sums, pack_chart, replace_files


def test_the_packed_chart_has_the_files_of_the_chart() -> None:
    with tarfile.open(fileobj=io.BytesIO(pack_chart())) as archive:
        packed = {
            member.name.removeprefix("claimctl/"): content.read()
            for member in archive.getmembers()
            if (content := archive.extractfile(member))
        }
    files = [path for path in CHART.rglob("*") if path.is_file() and path.name != ".helmignore"]
    assert packed == {str(path.relative_to(CHART)): path.read_bytes() for path in files}
    assert pack_chart() == pack_chart()


def test_the_sums_name_every_file_but_themselves(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"2")
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "SHA256SUMS").write_text("old")
    sums = list_sums(tmp_path)
    digests = [hashlib.sha256(data).hexdigest() for data in (b"1", b"2")]
    assert sums == f"{digests[0]}  a\n{digests[1]}  b\n"
    (tmp_path / "SHA256SUMS").write_text(sums)
    subprocess.run(
        ["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=tmp_path, check=True, timeout=60
    )


def test_files_of_an_earlier_build_go_and_others_stay(tmp_path: Path) -> None:
    made, dist = tmp_path / "made", tmp_path / "dist"
    for folder, name in ((dist, "SHA256SUMS.sig"), (dist, "other"), (made, "SHA256SUMS")):
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(name)
    replace_files(made, dist)
    assert sorted(path.name for path in dist.iterdir()) == ["SHA256SUMS", "other"]

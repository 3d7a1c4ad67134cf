"""Which wheels the image takes, and what it takes of them."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

from generate.locked import part
from image import wheels
from tests.support.locks import pins

DIGESTS = [64 * digit for digit in "ab"]
LOCK = f"""\
colorama==1.0 ; sys_platform == 'win32' \\
    --hash=sha256:{DIGESTS[0]}
    # via click
small==2.0 ; python_full_version < '3.12' \\
    --hash=sha256:{DIGESTS[0]} \\
    --hash=sha256:{DIGESTS[1]}
    # via claimctl
"""


def make_wheel(files: dict[str, str]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return written.getvalue()


def test_conditions_are_asked_about_the_image() -> None:
    assert wheels.read_pins(LOCK) == [wheels.Pin("small", "2.0", frozenset(DIGESTS))]


def test_every_package_of_the_lock_is_read() -> None:
    locked = {pin.name: pin.version for pin in wheels.read_pins(part("image"))}
    everything = pins(part("image"))
    assert locked == {name: everything[name] for name in everything if name != "colorama"}


def test_modules_and_metadata_are_taken_and_nothing_else() -> None:
    wheel = make_wheel(
        {
            "small/__init__.py": "",
            "small-2.0.dist-info/METADATA": "Name: small",
            "small-2.0.data/purelib/extra.py": "x",
            "small-2.0.data/data/share/man/man1/small.1": "page",
            "small-2.0.data/scripts/small": "#!python",
        }
    )
    assert sorted(wheels.unpack(wheel)) == [
        f"{wheels.PACKAGES}/extra.py",
        f"{wheels.PACKAGES}/small-2.0.dist-info/METADATA",
        f"{wheels.PACKAGES}/small/__init__.py",
    ]


def test_commands_are_run_by_the_python_of_the_image(tmp_path: Path) -> None:
    wheel = tmp_path / "small-2.0-py3-none-any.whl"
    points = "[console_scripts]\nsmall = small.cli:main\n"
    wheel.write_bytes(make_wheel({"small-2.0.dist-info/entry_points.txt": points}))
    [(path, entry)] = wheels.make_scripts(wheel).items()
    assert (path, entry.mode) == ("opt/claimctl/bin/small", 0o755)
    assert (entry.data or b"").decode() == (
        "#!/opt/claimctl/bin/python\nimport sys\nfrom small.cli import main\nsys.exit(main())\n"
    )


def test_a_wheel_of_an_extension_has_no_commands(tmp_path: Path) -> None:
    wheel = tmp_path / "small_extension-2.0-py3-none-any.whl"
    points = "[claimctl.extensions]\nsmall = small.extension:EXTENSION\n"
    wheel.write_bytes(make_wheel({"small_extension-2.0.dist-info/entry_points.txt": points}))
    assert wheels.make_scripts(wheel) == {}


def test_wheels_that_are_there_are_not_downloaded_again(tmp_path: Path) -> None:
    wheel = tmp_path / "small-2.0-py3-none-any.whl"
    wheel.write_bytes(make_wheel({"small/__init__.py": ""}))
    (tmp_path / "small-1.0-py3-none-any.whl").write_bytes(make_wheel({"small/__init__.py": "old"}))
    lock = LOCK.replace(DIGESTS[1], hashlib.sha256(wheel.read_bytes()).hexdigest())
    assert wheels.fetch(lock, tmp_path) == [wheel]

"""Try the image: ``python -m image.check``.

Builds twice in different folders and compares, unpacks, and runs commands below the read-only root
as the user of the image. Exit code 3: something is not as promised.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from image.build import build, read_source
from image.oci import pack_archive
from image.problem import ImageProblem
from image.reader import Reader
from image.rootfs import USER

NAME = "claimctl:check"
PACKED_BYTES = 45e6
START_SECONDS = 1.5
ENVIRONMENT = ("PATH=/opt/claimctl/bin:/usr/bin", "PYTHONDONTWRITEBYTECODE=1")
SHELLS = ("sh", "ash", "bash", "busybox", "dash", "perl")
COMMANDS = (("claimctl", "--version"), ("claimctl", "controller", "--help"))
# loads every extension module, so a library that is missing in the image shows
EXTENSIONS = """
import ctypes, pathlib
places = [pathlib.Path("/usr/lib/python3.11/lib-dynload"), pathlib.Path("/opt/claimctl/lib")]
print(len([ctypes.PyDLL(str(path)) for place in places for path in place.rglob("*.so")]))
"""
# imports all of claimctl and every package, so a module of Python that is missing shows
MODULES = """
import importlib, importlib.metadata, pkgutil, sys
import claimctl
left_out = set(sys.argv[1:])
names = [each.name for each in pkgutil.walk_packages(claimctl.__path__, "claimctl.")]
names += importlib.metadata.packages_distributions()
names += [f"opentelemetry.exporter.otlp.proto.http.{kind}_exporter" for kind in ("metric", "trace")]
for name in names:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] not in left_out:
            raise
print(len(names))
"""
LEFT_OUT = ("kubernetes", "kube_in_process")
CERTIFICATES = """
import ssl
context = ssl.create_default_context()
print(len(context.get_ca_certs()))
assert context.get_ca_certs()
"""


def list_files(root: Path) -> dict[str, tuple[int, int, int, str]]:
    """Mode, owner, size and target of all entries below a folder."""
    entries = {}
    for path in sorted(root.rglob("*")):
        found = path.lstat()
        target = os.readlink(path) if path.is_symlink() else ""
        size = found.st_size if path.is_file() else 0
        entries[str(path.relative_to(root))] = (found.st_mode, found.st_uid, size, target)
    return entries


def run_read_only(root: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command below ``root``, which it cannot write to, as the user of the image."""
    script = (
        'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && root=$0 && '
        f'exec chroot --userspec={USER}:{USER} "$root" "$@"'
    )
    words = ["unshare", "--mount", "sh", "-c", script, str(root), *command]
    variables = dict(each.split("=", 1) for each in ENVIRONMENT)
    # sh, mount and chroot are those of the machine
    environment = variables | {"PATH": f"{variables['PATH']}:/usr/sbin:/sbin:/bin"}
    return subprocess.run(words, capture_output=True, text=True, env=environment, check=False)


def check_commands(root: Path) -> Iterator[str]:
    """What is wrong with the commands that the image has and has not."""
    for name in SHELLS:
        if any((root / folder / name).exists() for folder in ("bin", "sbin", "opt/claimctl/bin")):
            yield f"the image has {name}"
    tried = {"modules": MODULES, "extension modules": EXTENSIONS, "certificates": CERTIFICATES}
    for what, code in tried.items():
        # the Python of claimctl's environment
        ended = run_read_only(root, "python", "-c", code, *LEFT_OUT)
        print(f"{what}: {ended.stdout.strip()}")
        if ended.returncode:
            yield f"{what}: {ended.stderr.strip().splitlines()[-1]}"
    for command in COMMANDS:
        yield from _check_command(root, command)
    if run_read_only(root, "python3", "-c", "open('/tmp/file', 'w')").returncode == 0:
        yield "the root was not read-only: nothing was tried"


def _check_command(root: Path, command: tuple[str, ...]) -> Iterator[str]:
    seconds = []
    for _ in range(3):
        before = used_seconds()
        ended = run_read_only(root, *command)
        seconds.append(used_seconds() - before)
    words = " ".join(command)
    print(f"{words}: {min(seconds):.2f} s of a processor")
    if ended.returncode:
        lines = ended.stderr.strip().splitlines() or ["no message"]
        yield f"{words} ends with {ended.returncode}: {lines[-1]}"
    if min(seconds) > START_SECONDS:
        yield f"{words} takes {min(seconds):.2f} s of a processor, more than {START_SECONDS} s"


def used_seconds() -> float:
    """The processor's time of all children: on a busy machine the clock says little."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def compare_with_other_programs(
    packed: bytes, manifest: str, ours: Path, work: Path
) -> Iterator[str]:
    """What skopeo and umoci say otherwise about the archive, where they are installed."""
    file, layout = work / "image.tar", work / "layout"
    file.write_bytes(packed)
    with tarfile.open(file) as opened:
        opened.extractall(layout, filter="data")
    if shutil.which("skopeo"):
        shown = _run("skopeo", "inspect", "--format", "{{.Digest}}", f"oci-archive:{file}")
        if shown.strip() != manifest:
            yield f"skopeo reads the digest {shown.strip()}, not {manifest}"
        _run(
            "skopeo",
            "copy",
            "-q",
            "--insecure-policy",
            f"docker-archive:{file}",
            f"dir:{work / 'copied'}",
        )
    else:
        print("skipped: reading with skopeo (apt-get install skopeo)")
    if shutil.which("umoci"):
        _run(
            "umoci", "unpack", "--image", f"{layout}:{NAME.partition(':')[2]}", str(work / "umoci")
        )
        if list_files(work / "umoci/rootfs") != list_files(ours):
            yield "umoci unpacks other files"
    else:
        print("skipped: unpacking with umoci (apt-get install umoci)")


def _run(*command: str) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        lines = ended.stderr.strip().splitlines() or ["no message"]
        raise ImageProblem(f"{' '.join(command[:2])}: {lines[-1]}", 3)
    return ended.stdout


def check(work: Path) -> Iterator[str]:
    """Everything that is not as promised."""
    built = read_source()
    first = build(built, work / "first")
    second = build(built, work / "another" / "second")
    packed = pack_archive(first, NAME)
    if packed != pack_archive(second, NAME):
        yield f"two builds differ: {first.manifest} and {second.manifest}"
    print(f"{first.manifest}, {len(packed) / 1e6:.1f} MB")
    if len(packed) > PACKED_BYTES:
        yield f"the archive has {len(packed) / 1e6:.1f} MB, more than {PACKED_BYTES / 1e6:.0f} MB"
    reader = Reader(packed)
    if os.geteuid() != 0:
        print("skipped: unpacking and running the image (needs root)")
        return
    root = work / "root"
    reader.unpack(root)
    work.chmod(0o755)
    yield from check_commands(root)
    yield from compare_with_other_programs(packed, first.manifest, root, work)


def main() -> int:
    try:
        with tempfile.TemporaryDirectory(prefix="claimctl-image-check-") as work:
            found = list(check(Path(work)))
    except ImageProblem as problem:
        print(f"error: {problem}", file=sys.stderr)
        return problem.code
    for each in found:
        print(f"error: {each}", file=sys.stderr)
    return 3 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())

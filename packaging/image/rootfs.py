"""The root file system below claimctl: Debian's files, and what its scripts would have made."""

from __future__ import annotations

from pathlib import Path

from image.debian import unpack
from image.tree import Tree, TreeEntry, make_file, make_link

USER = 65532
"""The number of the user and of the group that the image runs as."""
CERTIFICATES = "usr/share/ca-certificates/"


def make_system(packages: list[Path]) -> Tree:
    """The files of the packages, and those that are made of them."""
    tree = dict(make_skeleton())
    for package in packages:
        tree |= unpack(package)
    return tree | {"etc/ssl/certs/ca-certificates.crt": make_file(join_certificates(tree))}


def make_skeleton() -> Tree:
    """Directories, links and accounts that no package has."""
    merged = {name: make_link(f"usr/{name}") for name in ("bin", "lib", "lib64", "sbin")}
    users = (
        f"root:x:0:0:root:/root:/nologin\nclaimctl:x:{USER}:{USER}:claimctl:/nonexistent:/nologin\n"
    )
    return merged | {
        "dev": TreeEntry(),
        "etc/group": make_file(f"root:x:0:\nclaimctl:x:{USER}:\n"),
        "etc/nsswitch.conf": make_file("passwd: files\ngroup: files\nhosts: files dns\n"),
        "etc/passwd": make_file(users),
        "proc": TreeEntry(),
        "run": TreeEntry(),
        "sys": TreeEntry(),
        "tmp": TreeEntry(0o1777),
        "usr/bin/python3": make_link("python3.11"),
        # where OpenSSL looks for certificates
        "usr/lib/ssl/cert.pem": make_link("/etc/ssl/certs/ca-certificates.crt"),
        "usr/lib/ssl/certs": make_link("/etc/ssl/certs"),
        "usr/sbin": TreeEntry(),
        "var/tmp": TreeEntry(0o1777),
    }


def join_certificates(tree: Tree) -> bytes:
    """All certificates in one file, as OpenSSL reads them."""
    return b"".join(
        entry.data.rstrip(b"\n") + b"\n"
        for path, entry in sorted(tree.items())
        if path.startswith(CERTIFICATES) and entry.data
    )

"""Make the keys, tokens and kubeconfigs of a control plane in one directory."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kube_in_process.serving.kubeconfig import Access, write_kubeconfig
from kube_in_process.serving.tls import NAMES

ADMIN_USER, SCHEDULER_USER = "claimctl-admin", "system:kube-scheduler"
CONTROLLER_MANAGER_USER = "system:kube-controller-manager"
AUTHORITY = "ca.crt"
"""The file with the certificate that clients trust."""
_USERS = {
    ADMIN_USER: "system:masters",
    SCHEDULER_USER: "",
    CONTROLLER_MANAGER_USER: "system:masters",
}
"""The users, each with its group. kube-controller-manager uses one account for all its controllers
here, so this account needs the rights of all of them."""


@dataclass(frozen=True, slots=True)
class Files:
    """The files that servers and clients read; ``make_files`` makes them."""

    directory: Path
    url: str
    certificate: str
    tokens: dict[str, str]

    def path(self, name: str) -> str:
        return str(self.directory / name)

    def kubeconfig(self, user: str = ADMIN_USER) -> Path:
        return self.directory / f"{user.removeprefix('system:')}.kubeconfig"

    @property
    def access(self) -> Access:
        """Access as administrator."""
        return Access(self.url, self.tokens[ADMIN_USER], self.certificate)

    def write_kubeconfig(self, path: Path, token: str) -> None:
        """Write a kubeconfig for another user, such as a ServiceAccount."""
        write_kubeconfig(path, Access(self.url, token, self.certificate))


def make_files(
    directory: Path,
    port: int,
    more: Mapping[str, str] | None = None,
    addresses: Sequence[str] = (),
) -> Files:
    """Make keys, a certificate for the loopback, tokens and kubeconfigs.

    Args:
        more: further users, each with a group ('' for none).
        addresses: further addresses of the server.
    """
    from trustme import CA, KeyType

    authority = CA()
    issued = authority.issue_cert(*NAMES, *addresses)
    issued.private_key_pem.write_to_path(_secret(directory / "tls.key"))
    issued.cert_chain_pems[0].write_to_path(str(directory / "tls.crt"))
    authority.cert_pem.write_to_path(str(directory / AUTHORITY))
    accounts = CA(key_type=KeyType.RSA).private_key_pem
    accounts.write_to_path(_secret(directory / "accounts.key"))
    users = {**_USERS, **(more or {})}
    tokens = {user: secrets.token_urlsafe(24) for user in users}
    _write_tokens(directory / "tokens.csv", users, tokens)
    trusted = authority.cert_pem.bytes().decode("ascii")
    files = Files(directory, f"https://127.0.0.1:{port}", trusted, tokens)
    for user, token in tokens.items():
        files.write_kubeconfig(files.kubeconfig(user), token)
    return files


def _write_tokens(path: Path, users: Mapping[str, str], tokens: Mapping[str, str]) -> None:
    lines = [f'{tokens[user]},{user},{user},"{group}"' for user, group in users.items()]
    Path(_secret(path)).write_text("\n".join(lines) + "\n")


def _secret(path: Path) -> str:
    """A new file that nobody else may read."""
    path.touch(0o600)
    return str(path)

"""Fills Secrets of the type ``kubernetes.io/service-account-token``."""

from __future__ import annotations

from base64 import b64encode
from contextlib import suppress

from kube_in_process.components.objects import annotations_of, key_of, uid
from kube_in_process.errors import NotFound
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Component
from kube_in_process.runtime.views import Change, Key
from kube_in_process.storage.requests import DeleteOptions

KIND = "kubernetes.io/service-account-token"
ACCOUNT = "kubernetes.io/service-account.name"
ACCOUNT_UID = "kubernetes.io/service-account.uid"
ENDLESS = 2**32
"""Seconds for which a token is valid: the most that a client may ask for."""


class TokenController(Component[Key]):
    name = "tokens-controller"

    def watch(self) -> None:
        self.views["secrets"].index("account", _account)
        self.views["secrets"].subscribe(self._secret_changed)
        self.views["serviceaccounts"].subscribe(self._account_changed)

    def _secret_changed(self, change: Change) -> None:
        if change.new is not None and change.new.get("type") == KIND:
            self.queue.add(change.key)

    def _account_changed(self, change: Change) -> None:
        if change.new is None:
            for secret in self.views["secrets"].by("account", "/".join(change.key)):
                self.queue.add(key_of(secret))

    def sync(self, key: Key) -> None:
        """Fill the Secret, or delete it if there is no such account."""
        secret = self.views["secrets"].get(*key)
        if secret is None or secret.get("type") != KIND:
            return
        account = self.views["serviceaccounts"].get(key[0], annotations_of(secret)[ACCOUNT])
        known = annotations_of(secret).get(ACCOUNT_UID)
        if account is None or known not in (None, uid(account)):
            with suppress(NotFound):
                self.api.delete("secrets", *key, DeleteOptions(uid(secret)))
        elif known is None or "token" not in (secret.get("data") or {}):
            self._fill(secret, account)

    def _fill(self, secret: Object, account: Object) -> None:
        space, plain = key_of(account)
        authority = self.api.get("configmaps", space, "kube-root-ca.crt")["data"]["ca.crt"]
        texts = {
            "ca.crt": authority,
            "namespace": space,
            "token": self.api.token(space, plain, ENDLESS),
        }
        data = {key: b64encode(text.encode()).decode() for key, text in texts.items()}
        annotations = {**annotations_of(secret), ACCOUNT_UID: uid(account)}
        metadata = {**secret["metadata"], "annotations": annotations}
        wanted = {**secret, "metadata": metadata, "data": {**(secret.get("data") or {}), **data}}
        self.api.update("secrets", wanted)


def _account(secret: Object) -> tuple[str, ...]:
    """Index values: ``namespace/name`` of the account of a token's Secret."""
    if secret.get("type") != KIND:
        return ()
    space, _ = key_of(secret)
    return (f"{space}/{annotations_of(secret).get(ACCOUNT, '')}",)

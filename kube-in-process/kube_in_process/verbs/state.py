"""The state that all verbs use: store, clock, kinds, strategies and schemas."""

from __future__ import annotations

from random import Random

from kube_in_process.admission.chain import AdmissionChain
from kube_in_process.kinds.authorization import AlwaysAllow, Authorizer
from kube_in_process.kinds.builtin import builtin_kinds
from kube_in_process.kinds.decoding import Decoder
from kube_in_process.kinds.kind import Kind
from kube_in_process.kinds.namespaces import admit_namespace
from kube_in_process.kinds.strategies import builtin_strategies
from kube_in_process.kinds.strategy import Strategy
from kube_in_process.managed_fields.apply import Applier
from kube_in_process.managed_fields.managers import ManagedFields
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.schema.registry import Schemas
from kube_in_process.seams import Clock
from kube_in_process.storage.store import Store


class ServerState:
    """``authorizer`` may be replaced before the first request."""

    def __init__(
        self, store: Store, clock: Clock, features: Features, rng: Random | None = None
    ) -> None:
        self.store = store
        self.clock = clock
        self.rng = rng or Random(0)
        self.kinds = builtin_kinds(features)
        self.strategies = builtin_strategies()
        self.schemas = Schemas(lambda: self.features)
        self.decoder = Decoder(self.schemas)
        self.managed_fields = ManagedFields(self.schemas)
        self.applier = Applier(self.schemas)
        self.authorizer: Authorizer = AlwaysAllow()
        self.admission = AdmissionChain(self)
        self.completed: set[str] = set()
        """UIDs of objects that the next write changes even if it sends no change: they were shown
        with more than was stored, or scaled (``has_two_orders``)."""
        self._features = features

    @property
    def features(self) -> Features:
        return self._features

    def switch(self, features: Features) -> None:
        """Change the gates at run time; this can add and remove kinds."""
        wanted = builtin_kinds(features)
        for kind in builtin_kinds(self._features):
            if wanted.by_plural(kind.group, kind.plural) != kind:
                self.kinds.remove(kind)
        for kind in wanted:
            if self.kinds.by_plural(kind.group, kind.plural) is None:
                self.kinds.add(kind)
        self._features = features

    def outward(self, kind: Kind, version: str, obj: Object) -> Object:
        """Convert from the stored form to a version of the API. May change ``obj``."""
        return self.strategies.of(kind).outward(obj, kind, version)

    def stored_as(self, kind: Kind, version: str) -> bool:
        """Whether objects of a kind are stored in the form of that version."""
        strategy = self.strategies.of(kind)
        plain = strategy.stored_plain or type(strategy).outward is Strategy.outward
        return plain and version in ("", kind.version)

    def admit_namespace(self, kind: Kind, namespace: str, name: str) -> None:
        """Refuse a create in a namespace that does not exist (404) or is terminating (403)."""
        admit_namespace(self.store, kind, namespace, name)

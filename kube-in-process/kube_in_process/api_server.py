"""The API server, put together from its parts."""

from __future__ import annotations

from random import Random

from kube_in_process.auth.authn import AccessControl, Tokens
from kube_in_process.auth.bootstrap import make_policy
from kube_in_process.auth.escalation import RoleStrategy
from kube_in_process.auth.rbac import GROUP, AllowAll, Rbac
from kube_in_process.auth.reviews import Reviews
from kube_in_process.crd.definitions import Definitions
from kube_in_process.http.documents.lookup import Documents
from kube_in_process.http.handler import Handler
from kube_in_process.http.tables.shapes import Tables
from kube_in_process.options import Authorization, ClusterOptions
from kube_in_process.seams import Clock
from kube_in_process.storage.store import Store
from kube_in_process.text.times import timestamp
from kube_in_process.verbs.api import Api
from kube_in_process.verbs.eviction import evict


def api_server(options: ClusterOptions, clock: Clock, rng: Random | None = None) -> Handler:
    """An API server without components. It has only the objects that it makes itself."""
    store = Store(lambda: clock.monotonic(), options.history_limit)
    api = Api(store, clock, options.features(), rng or Random(options.seed))
    return handler_of(api, options.authorization)


def handler_of(api: Api, authorization: Authorization | None = None) -> Handler:
    """Connect everything to a core that has served no request yet."""
    api.posts["", "pods", "eviction"] = evict
    make_policy(api.store, timestamp(api.clock.now()))
    definitions = Definitions(api)
    return Handler(
        api,
        guard=_access_control(api, authorization),
        documents=Documents(api.kinds, api.schemas, lambda: api.features),
        views=Tables(api.schemas, definitions.columns, api.clock.now, lambda: api.features),
    )


def _access_control(api: Api, authorization: Authorization | None) -> AccessControl:
    """Who may enter. Without RBAC, every request is allowed for the transport's user."""
    tokens = Tokens(api.store, api.clock.now, api.rng)
    if authorization is not Authorization.RBAC:
        Reviews(api, AllowAll(), tokens)
        return AccessControl(tokens, AllowAll(), lenient=True)
    rbac = Rbac(api.store)
    api.authorizer = rbac
    for plural in ("roles", "clusterroles"):
        api.strategies.register(GROUP, plural, RoleStrategy(rbac))
    Reviews(api, rbac, tokens)
    return AccessControl(tokens, rbac, lenient=False)

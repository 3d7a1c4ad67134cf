"""A user can grant by RBAC only what the user may do."""

from __future__ import annotations

from collections.abc import Iterator

from kube_in_process.auth.rbac import GROUP, Rbac, Rule, covers
from kube_in_process.errors import FieldError, Subject, forbidden
from kube_in_process.kinds.authorization import Attributes
from kube_in_process.kinds.strategy import WriteContext
from kube_in_process.kinds.validation.rbac import RuledStrategy
from kube_in_process.objects import Object
from kube_in_process.storage.requests import MASTERS, Actor

_NOBODY = Actor("")


class RoleStrategy(RuledStrategy):
    """Roles and ClusterRoles under RBAC."""

    def __init__(self, rbac: Rbac) -> None:
        self._rbac = rbac

    def admit(self, obj: Object, context: WriteContext) -> None:
        self._check(obj, context)

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        if new.get("rules") != old.get("rules"):
            self._check(new, context)
        return super().validate_update(new, old, context)

    def _check(self, obj: Object, context: WriteContext) -> None:
        """Raise StatusError 403 if a rule allows more than the writer may do."""
        actor, meta = context.actor, obj["metadata"]
        if context.internal or MASTERS in actor.groups or self._may_escalate(context, meta):
            return
        namespace = meta.get("namespace", "")
        held = [grant.rule for grant in self._rbac.grants(actor, namespace)]
        missing = [
            one
            for rule in obj.get("rules") or ()
            for one in _single(rule)
            if not any(_holds(rule_held, one) for rule_held in held)
        ]
        if missing:
            groups = " ".join(f'"{group}"' for group in actor.groups)
            why = (
                f'user "{actor.user}" (groups=[{groups}]) is attempting to grant RBAC permissions '
                "not currently held:\n" + "\n".join(_shown(rule) for rule in missing)
            )
            subject = Subject(GROUP, context.kind.plural, meta.get("name", ""))
            raise forbidden(subject, why)

    def _may_escalate(self, context: WriteContext, meta: Object) -> bool:
        asked = Attributes(
            context.actor,
            "escalate",
            GROUP,
            plural=context.kind.plural,
            namespace=meta.get("namespace", ""),
            name=meta.get("name", ""),
        )
        return self._rbac.allowed(asked)


def _single(rule: Rule) -> Iterator[Object]:
    """Split a rule into rules with one verb, group, resource and name each."""
    for verb in rule.get("verbs") or ():
        for url in rule.get("nonResourceURLs") or ():
            yield {"nonResourceURLs": [url], "verbs": [verb]}
        for group in rule.get("apiGroups") or ():
            for resource in rule.get("resources") or ():
                for name in rule.get("resourceNames") or ("",):
                    one = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                    yield {**one, "resourceNames": [name]} if name else one


def _holds(held: Rule, one: Object) -> bool:
    """Whether ``held`` covers a rule with one verb, group, resource and name."""
    if "nonResourceURLs" in one:
        path = one["nonResourceURLs"][0]
        return covers(held, Attributes(_NOBODY, one["verbs"][0], path=path))
    plural, _, sub = one["resources"][0].partition("/")
    name = (one.get("resourceNames") or [""])[0]
    group, verb = one["apiGroups"][0], one["verbs"][0]
    return covers(held, Attributes(_NOBODY, verb, group, "", plural, sub, "", name))


def _shown(rule: Object) -> str:
    parts = []
    for title, key in (
        ("APIGroups", "apiGroups"),
        ("Resources", "resources"),
        ("ResourceNames", "resourceNames"),
        ("NonResourceURLs", "nonResourceURLs"),
        ("Verbs", "verbs"),
    ):
        if key in rule:
            values = " ".join(f'"{value}"' for value in rule[key])
            parts.append(f"{title}:[{values}]")
    return "{" + ", ".join(parts) + "}"

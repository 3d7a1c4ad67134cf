"""The kinds that the server serves, their names and properties."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Kind:
    """One resource of the API.

    ``versions`` are the served versions, the preferred one first. ``generation``: the server keeps
    metadata.generation. ``deletes_to`` is the answer to DELETE when the object is gone at once.
    ``unconditional_update`` allows a PUT without resourceVersion, ``create_on_update`` a PUT of a
    missing object. ``stored_in`` is the storage of another kind (group, plural). ``stored_as`` is
    the version of the stored form, if it is not the preferred one, and ``hashed_as`` the version
    in the storageVersionHash of discovery. ``custom`` is set for kinds of a
    CustomResourceDefinition, and ``terminating`` when that is being deleted.
    """

    group: str
    versions: tuple[str, ...]
    plural: str
    kind: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    generation: bool = False
    deletes_to: str = "status"
    unconditional_update: bool = True
    create_on_update: bool = False
    stored_in: tuple[str, str] | None = None
    custom: bool = False
    terminating: bool = False
    singular: str = ""
    list_kind: str = ""
    stored_as: str = ""
    hashed_as: str = ""

    @property
    def version(self) -> str:
        """The version of stored objects: ``stored_as``, or the preferred one."""
        return self.stored_as or self.versions[0]

    @property
    def storage(self) -> tuple[str, str]:
        return self.stored_in or (self.group, self.plural)

    @property
    def singular_name(self) -> str:
        return self.singular or self.kind.lower()

    @property
    def listed_as(self) -> str:
        return self.list_kind or f"{self.kind}List"

    @property
    def resource(self) -> str:
        """``deployments.apps``; only the plural for the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def api_version(self, version: str = "") -> str:
        chosen = version or self.version
        return f"{self.group}/{chosen}" if self.group else chosen


class Kinds:
    """The served kinds. CustomResourceDefinitions add and remove kinds."""

    def __init__(self, kinds: tuple[Kind, ...] = ()) -> None:
        self._by_plural: dict[tuple[str, str], Kind] = {}
        self._by_kind: dict[tuple[str, str], Kind] = {}
        for kind in kinds:
            self.add(kind)

    def lookup(self, group: str, version: str, plural: str) -> Kind | None:
        """The kind of a path; None if it is not served."""
        kind = self._by_plural.get((group, plural))
        return kind if kind is not None and version in kind.versions else None

    def by_kind(self, group: str, kind: str) -> Kind | None:
        return self._by_kind.get((group, kind))

    def by_plural(self, group: str, plural: str) -> Kind | None:
        return self._by_plural.get((group, plural))

    def named(self, plural: str) -> Kind:
        """The kind of a plural name: ``pods``, or ``events.events.k8s.io`` if the plural is
        ambiguous.

        Raises:
            KeyError: no such kind is served.
        """
        kind = self._by_plural.get(("", plural))
        if kind is None:
            kind = next((k for k in self if plural in (k.plural, k.resource)), None)
        if kind is None:
            raise KeyError(plural)
        return kind

    def groups(self) -> tuple[str, ...]:
        """The groups in the order in which they were added; the core group is ''."""
        return tuple(dict.fromkeys(kind.group for kind in self))

    def versions(self, group: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(v for k in self if k.group == group for v in k.versions))

    def add(self, kind: Kind) -> None:
        self._by_plural[kind.group, kind.plural] = kind
        self._by_kind[kind.group, kind.kind] = kind

    def remove(self, kind: Kind) -> None:
        self._by_plural.pop((kind.group, kind.plural), None)
        self._by_kind.pop((kind.group, kind.kind), None)

    def __iter__(self) -> Iterator[Kind]:
        return iter(tuple(self._by_plural.values()))

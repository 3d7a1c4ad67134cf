"""Schemas of the built-in kinds, from the models of the official client.

``alpha`` has fields of features that no released API server has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from kube_in_process.schema import alpha
from kube_in_process.schema.facts import FACTS, ListRule
from kube_in_process.schema.models import Model, model_names, recorded_model
from kube_in_process.schema.texts import TOLD, server_text
from kube_in_process.schema.tree import ANY, Schema

_SCALARS = {
    "str": ("string", ""),
    "int": ("integer", "int32"),
    "float": ("number", "double"),
    "bool": ("boolean", ""),
    "datetime": ("string", "date-time"),
    "bytes": ("string", "byte"),
}
_INTEGERS = {"int32", "int64"}
_GENERIC = re.compile(r"^(List|Dict)\[(?:str, )?(.+)\]$")


class BuiltinSchemas:
    """Schema trees by (group, version, kind) and by model name, built on demand.

    ``reserved_for``: whether they have the fields of KEP-5194. ``added_field``: the name of a text
    field that each model has besides its own; '' if none.
    """

    def __init__(self, reserved_for: bool, added_field: str) -> None:
        self._reserved_for = reserved_for
        self._added_field = added_field
        self._kinds: dict[tuple[str, str, str], Schema | None] = {}
        self._models: dict[str, Schema] = {}

    def find(self, group: str, version: str, kind: str) -> Schema | None:
        """The schema of a built-in kind; None if the package has no such kind."""
        key = (group, version, kind)
        if key not in self._kinds:
            self._kinds[key] = self._find(group, version, kind)
        return self._kinds[key]

    def _find(self, group: str, version: str, kind: str) -> Schema | None:
        added = alpha.ADDED.get((group, version, kind))
        if added is not None:
            return self._added_model(added)
        name = model_name(group, version, kind)
        return self.model(name) if name else None

    def model(self, name: str) -> Schema:
        """The schema of one model. Each model is built once."""
        if name not in self._models:
            self._models[name] = self._build(name)
        return self._models[name]

    def _build(self, name: str) -> Schema:
        model = recorded_model(name)
        text = TOLD.texts.get(name, server_text(model.description))
        return Schema(
            type="object",
            definition=name,
            definition_text=text,
            description=text,
            atomic=name in FACTS.atomic_objects,
            required=_required(name, model),
            load=lambda: self._properties(name, model),
        )

    def _properties(self, name: str, model: Model) -> Mapping[str, Schema]:
        properties = {
            json_name: self._field(f"{name}.{json_name}", type_name, text)
            for json_name, (type_name, text) in model.fields.items()
        }
        if self._reserved_for:
            for json_name, (type_name, text) in alpha.RESERVED_FOR_FIELDS.get(name, {}).items():
                properties[json_name] = self._field(f"{name}.{json_name}", type_name, text)
        if self._added_field:
            properties[self._added_field] = Schema(type="string")
        return properties

    def _added_model(self, definition: alpha.AddedModel) -> Schema:
        return Schema(
            type="object",
            definition=definition.name,
            definition_text=definition.description,
            description=definition.description,
            required=definition.required,
            load=lambda: {
                name: self._field(f"{definition.name}.{name}", type_name, text)
                for name, (type_name, text) in definition.fields.items()
            },
        )

    def _field(self, place: str, type_name: str, text: str = "") -> Schema:
        return self._typed(place, type_name, TOLD.texts.get(place, server_text(text)))

    def _typed(self, place: str, type_name: str, text: str = "") -> Schema:
        """A field, or an item of a field, which has no text of its own."""
        if type_name in alpha.DEFINITIONS:
            return self._added_model(alpha.DEFINITIONS[type_name])
        generic = _GENERIC.match(type_name)
        if generic is not None:
            return self._collection(place, generic[1], generic[2], text)
        if type_name in _SCALARS:
            return _scalar(place, type_name, text)
        if type_name == "object":
            return _untyped(place, text)
        return self._reference(place, type_name, text)

    def _collection(self, place: str, shape: str, item: str, text: str) -> Schema:
        quantities = item == "str" and place.rsplit(".", 1)[-1] in FACTS.quantity_maps
        if shape == "Dict" and quantities:
            items = Schema(format="quantity")
        else:
            items = self._typed(place, item)
        if shape == "Dict":
            return Schema(
                type="map",
                description=text,
                items=items,
                atomic=place in FACTS.atomic_maps,
            )
        rule = _list_rule(place, items)
        return Schema(
            type="array",
            description=text,
            items=items,
            atomic=rule.list_type == "atomic",
            list_type=rule.list_type,
            list_keys=rule.keys,
            patch_strategy=rule.strategy,
            merge_key=rule.merge_key,
        )

    def _reference(self, place: str, name: str, text: str) -> Schema:
        target = self.model(name)
        return Schema(
            type="object",
            definition=target.definition,
            definition_text=target.definition_text,
            description=text if place in TOLD.texts else text or target.description,
            atomic=target.atomic,
            required=target.required,
            patch_strategy="retainKeys" if place in FACTS.keep_keys_fields else "",
            load=lambda: target.properties,
        )


@cache
def builtin_schemas(reserved_for: bool = False, added_field: str = "") -> BuiltinSchemas:
    """The same for all servers of this process: nothing changes a tree."""
    return BuiltinSchemas(reserved_for, added_field)


def _required(name: str, model: Model) -> tuple[str, ...]:
    required = TOLD.required.get(name)
    if required is None:
        required = tuple(field for field in model.fields if field in model.required)
    added = (field for field in model.fields if f"{name}.{field}" in FACTS.required)
    return tuple(dict.fromkeys((*required, *added)))


def model_name(group: str, version: str, kind: str) -> str:
    """The client's name of a kind's model, such as EventsV1Event or V1Deployment; '' if none."""
    prefix = version[:1].upper() + version[1:]
    family = (group.split(".")[0] or "core").capitalize()
    for name in (f"{family}{prefix}{kind}", f"{prefix}{kind}"):
        if name in model_names():
            return name
    return ""


def _list_rule(place: str, items: Schema) -> ListRule:
    rule = FACTS.lists.get(place)
    if rule is not None:
        return rule
    if place.endswith(".conditions") and "type" in items.properties:
        return FACTS.conditions
    return ListRule("atomic")


def _scalar(place: str, type_name: str, text: str) -> Schema:
    kind, form = _SCALARS[type_name]
    if place in FACTS.micro_times:
        form = "micro-time"
    if place in FACTS.quantities:
        return Schema(format="quantity", description=text)
    if form in _INTEGERS and {place, place.rsplit(".", 1)[-1]} & FACTS.int64:
        form = "int64"
    enum = TOLD.enums.get(place, ())
    return Schema(type=kind, format=form, description=text, enum=enum)


def _untyped(place: str, text: str) -> Schema:
    if place in FACTS.int_or_string:
        return Schema(format="int-or-string", description=text)
    return replace(ANY, description=text, atomic=True)

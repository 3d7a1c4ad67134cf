"""The structural schemas that CRDs need, made from the structs that claimctl reads and writes.

A structural schema has a type at every node and no $ref. An optional field is absent rather than
null; ``nullable`` is set only where null does not mean absent. See 'Specifying a structural schema'
in the Kubernetes documentation. The docstrings of structs and of their fields are the descriptions.
"""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise
from typing import Any

import msgspec
from msgspec.inspect import (
    BoolType,
    DateTimeType,
    Field,
    IntType,
    Metadata,
    NoneType,
    StrType,
    StructType,
    Type,
    UnionType,
    VarTupleType,
    type_info,
)

from claimctl.wire.limits import PRESENCE, WHOLE
from claimctl.wire.mending import takes_null
from claimctl.wire.meta import ObjectMeta

Json = dict[str, Any]

_SCALARS: dict[type[Type], str] = {
    BoolType: "boolean",
    DateTimeType: "string",
    IntType: "integer",
    StrType: "string",
}
_FIRST = ("description", "type", "format", "nullable", "default", "enum")
_LAST = ("required", "properties", "items")
_SERVER_OWNED: Json = {
    "apiVersion": {"description": "The version of the schema of this object.", "type": "string"},
    "kind": {"description": "The kind of this object.", "type": "string"},
}


def structural_schema(kind: type[msgspec.Struct]) -> Json:
    """The ``openAPIV3Schema`` of a kind. The API server knows the schema of the metadata."""
    schema = _node(type_info(kind))
    schema["properties"] |= _SERVER_OWNED
    return schema


def _node(type_: Type) -> Json:
    match type_:
        case Metadata(type=inner, extra_json_schema=extra):
            keywords = {key: word for key, word in (extra or {}).items() if key != WHOLE}
            return _ordered({**_node(inner), **keywords})
        case UnionType(types=(inner, NoneType())):
            return _node(inner)
        case VarTupleType(item_type=item):
            return {"type": "array", "items": _node(item)}
        case StructType(cls=struct) if struct is ObjectMeta:
            return {"type": "object"}
        case StructType(cls=struct, fields=fields):
            return _ordered(_object(struct, fields))
        case _ if type(type_) in _SCALARS:
            return {"type": _SCALARS[type(type_)]}
    raise TypeError(f"no structural schema for {type_}")


def _object(struct: type[msgspec.Struct], fields: tuple[Field, ...]) -> Json:
    descriptions = field_docstrings(struct)
    properties, required = {}, []
    for field in fields:
        name = field.encode_name
        node = _node(field.type)
        if field.name in descriptions:
            node["description"] = descriptions[field.name]
        presence = node.pop(PRESENCE, "")
        if presence == "required" or field.required:
            required.append(name)
        elif not presence:
            node |= _default(field)
        properties[name] = _ordered(node)
    schema: Json = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if struct.__doc__:
        schema["description"] = _joined(struct.__doc__)
    return schema


def _default(field: Field) -> Json:
    """The default that the server fills in. Empty ones mean the same as absence; 0 does not."""
    default = msgspec.to_builtins(field.default)
    if default in (None, "", (), {}):
        return {}
    return {"default": default, **({"nullable": True} if takes_null(field.type) else {})}


def field_docstrings(struct: type[msgspec.Struct]) -> dict[str, str]:
    """The texts that follow the fields of a struct in its source, by the names of the fields."""
    [tree] = ast.parse(inspect.getsource(struct)).body
    assert isinstance(tree, ast.ClassDef)
    return {
        field.target.id: _joined(text.value.value)
        for field, text in pairwise(tree.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def _joined(text: str) -> str:
    return " ".join(text.split())


def _ordered(node: Json) -> Json:
    order = [*_FIRST, *sorted(node.keys() - {*_FIRST, *_LAST}), *_LAST]
    return {key: node[key] for key in order if key in node}

"""The messages between a kubelet and a DRA driver, built from a table of their fields.

They are those of ``k8s.io/kubelet/pkg/apis``: ``pluginregistration/v1`` and ``dra/v1``, with their
names and field numbers.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

REGISTRATION = "pluginregistration"
DRA = "k8s.io.kubelet.pkg.apis.dra.v1"
_TEXT, _TEXTS, _BOOL = "string", "string*", "bool"

_TABLES: dict[str, dict[str, dict[str, tuple[int, str]]]] = {
    REGISTRATION: {
        "InfoRequest": {},
        "PluginInfo": {
            "type": (1, _TEXT),
            "name": (2, _TEXT),
            "endpoint": (3, _TEXT),
            "supported_versions": (4, _TEXTS),
        },
        "RegistrationStatus": {"plugin_registered": (1, _BOOL), "error": (2, _TEXT)},
        "RegistrationStatusResponse": {},
    },
    DRA: {
        "Claim": {"namespace": (1, _TEXT), "uid": (2, _TEXT), "name": (3, _TEXT)},
        "Device": {
            "request_names": (1, _TEXTS),
            "pool_name": (2, _TEXT),
            "device_name": (3, _TEXT),
            "cdi_device_ids": (4, _TEXTS),
        },
        "NodePrepareResourcesRequest": {"claims": (1, "Claim*")},
        "NodePrepareResourceResponse": {"devices": (1, "Device*"), "error": (2, _TEXT)},
        "NodePrepareResourcesResponse": {"claims": (1, "{NodePrepareResourceResponse")},
        "NodeUnprepareResourcesRequest": {"claims": (1, "Claim*")},
        "NodeUnprepareResourceResponse": {"error": (1, _TEXT)},
        "NodeUnprepareResourcesResponse": {"claims": (1, "{NodeUnprepareResourceResponse")},
    },
}
"""By package and message: its fields with number and type. ``*`` marks a list, and ``{`` a map from
texts."""
_Field = descriptor_pb2.FieldDescriptorProto
_PLAIN = {_TEXT: _Field.TYPE_STRING, _BOOL: _Field.TYPE_BOOL}


def message(package: str, name: str) -> Any:
    """The class of a message. The fields of its instances are not typed."""
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{package}.{name}"))


def _pool() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    for package, messages in _TABLES.items():
        file = descriptor_pb2.FileDescriptorProto(
            name=f"{package}.proto", package=package, syntax="proto3"
        )
        for name, fields in messages.items():
            message = file.message_type.add(name=name)
            for field, (number, kind) in fields.items():
                _add(message, package, field, number, kind)
        pool.Add(file)
    return pool


def _add(
    message: descriptor_pb2.DescriptorProto, package: str, name: str, number: int, kind: str
) -> None:
    repeated = kind[-1] == "*" or kind[0] == "{"
    label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
    added = message.field.add(name=name, number=number, label=label)
    plain = kind.strip("*{")
    if kind[0] == "{":
        entry = message.nested_type.add(name=f"{name.capitalize()}Entry")
        entry.options.map_entry = True
        _add(entry, package, "key", 1, _TEXT)
        _add(entry, package, "value", 2, plain)
        plain = f"{message.name}.{entry.name}"
    if plain in _PLAIN:
        added.type = _PLAIN[plain]
    else:
        added.type, added.type_name = _Field.TYPE_MESSAGE, f".{package}.{plain}"


_POOL = _pool()

"""The messages to a kubelet, byte for byte: their numbers are those of the published protocol."""

from __future__ import annotations

from kube_in_process.real.nodes.messages import DRA, REGISTRATION, message


def test_a_plugin_tells_its_type_name_endpoint_and_versions() -> None:
    info = message(REGISTRATION, "PluginInfo")(
        type="DRAPlugin", name="gpu", endpoint="/s", supported_versions=["v1.DRAPlugin"]
    )
    written = b"\n\x09DRAPlugin\x12\x03gpu\x1a\x02/s\x22\x0cv1.DRAPlugin"
    assert info.SerializeToString() == written


def test_a_claim_in_a_request_is_read() -> None:
    claim = b"\n\x04team\x12\x03uid\x1a\x05slice"
    asked = message(DRA, "NodePrepareResourcesRequest").FromString(
        b"\n" + bytes([len(claim)]) + claim
    )
    (read,) = asked.claims
    assert (read.namespace, read.uid, read.name) == ("team", "uid", "slice")


def test_an_answer_has_the_devices_of_each_claim_by_uid() -> None:
    answer = message(DRA, "NodePrepareResourcesResponse")()
    answer.claims["uid"].devices.add(request_names=["gpu"], pool_name="n", device_name="d")
    device = b"\n\x03gpu\x12\x01n\x1a\x01d"
    response = b"\n" + bytes([len(device)]) + device
    entry = b"\n\x03uid\x12" + bytes([len(response)]) + response
    assert answer.SerializeToString() == b"\n" + bytes([len(entry)]) + entry


def test_an_error_is_the_second_field_of_a_preparation_and_the_first_of_its_end() -> None:
    prepared = message(DRA, "NodePrepareResourceResponse")(error="no")
    unprepared = message(DRA, "NodeUnprepareResourceResponse")(error="no")
    assert prepared.SerializeToString() == b"\x12\x02no"
    assert unprepared.SerializeToString() == b"\n\x02no"

"""Signatures: who has the public key can tell whether an image or a statement is the signed one."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from image.problem import ImageProblem
from image.signature import encode_for_signing, is_valid, make_payload, read_key, seal, sign

KEY = ec.derive_private_key(5194, ec.SECP256R1())
OTHER = ec.derive_private_key(5729, ec.SECP256R1())
DIGEST = "sha256:" + 64 * "a"


def pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, password: bytes = b"") -> bytes:
    encryption = BestAvailableEncryption(password) if password else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)


def test_the_public_key_verifies_what_was_signed() -> None:
    payload = make_payload("registry.example.com/claimctl:1", DIGEST)
    signature = sign(KEY, payload)
    assert is_valid(KEY.public_key(), payload, signature)
    assert not is_valid(OTHER.public_key(), payload, signature)
    assert not is_valid(KEY.public_key(), payload.replace(b"a", b"b"), signature)


def test_signing_twice_gives_the_same_bytes() -> None:
    assert sign(KEY, b"text") == sign(KEY, b"text")


def test_the_payload_is_the_one_of_cosign() -> None:
    assert json.loads(make_payload("registry.example.com/claimctl:1", DIGEST)) == {
        "critical": {
            "identity": {"docker-reference": "registry.example.com/claimctl"},
            "image": {"docker-manifest-digest": DIGEST},
            "type": "cosign container image signature",
        },
        "optional": None,
    }


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_openssl_verifies_it_as_the_pages_say(tmp_path: Path) -> None:
    public = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "key.pub").write_bytes(public)
    (tmp_path / "signature").write_bytes(base64.b64decode(sign(KEY, b"text")))
    (tmp_path / "text").write_bytes(b"text")
    command = [
        "openssl",
        "dgst",
        "-sha256",
        "-verify",
        "key.pub",
        "-signature",
        "signature",
        "text",
    ]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "Verified OK\n")


def test_a_sealed_statement_carries_the_statement_and_its_signature() -> None:
    envelope = json.loads(seal(KEY, b'{"a":1}'))
    assert base64.b64decode(envelope["payload"]) == b'{"a":1}'
    assert envelope["payloadType"] == "application/vnd.in-toto+json"
    [signature] = envelope["signatures"]
    signed = b'DSSEv1 28 application/vnd.in-toto+json 7 {"a":1}'
    assert encode_for_signing(b'{"a":1}') == signed
    assert is_valid(KEY.public_key(), signed, signature["sig"])


def test_a_key_is_read_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(pem(KEY))
    assert read_key(tmp_path / "key").private_numbers() == KEY.private_numbers()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no key",
        pem(ec.derive_private_key(7, ec.SECP384R1())),
        pem(KEY, b"password"),
        KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
    ],
    ids=["empty", "text", "another curve", "with a password", "public"],
)
def test_anything_else_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "key").write_bytes(content)
    with pytest.raises(ImageProblem) as refused:
        read_key(tmp_path / "key")
    expected = "expected an ECDSA key over P-256 in PEM without a password"
    assert (str(refused.value), refused.value.code) == (f"KEY={tmp_path}/key: {expected}", 2)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ImageProblem, match=r"KEY=.*/key: No such file or directory"):
        read_key(tmp_path / "key")

"""Signatures with a key that is handed in: of the image as cosign has them, and of statements.

The formats: cosign's SIGNATURE_SPEC.md ("simple signing", ECDSA over P-256 with SHA-256), and DSSE.
"""

from __future__ import annotations

import base64
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from image.oci import encode
from image.problem import ImageProblem

PAYLOAD = "application/vnd.in-toto+json"
# the nonce comes from the key and the message (RFC 6979), so that a build can be repeated
_ALGORITHM = ec.ECDSA(hashes.SHA256(), deterministic_signing=True)


def read_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """The private key in a PEM file."""
    expected = "expected an ECDSA key over P-256 in PEM without a password"
    try:
        key = load_pem_private_key(path.read_bytes(), None)
    except OSError as error:
        raise ImageProblem(f"KEY={path}: {error.strerror}", 2) from None
    except (TypeError, ValueError):
        raise ImageProblem(f"KEY={path}: {expected}", 2) from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != "secp256r1":
        raise ImageProblem(f"KEY={path}: {expected}", 2)
    return key


def make_payload(reference: str, manifest: str) -> bytes:
    """What is signed for the image with the digest ``manifest``."""
    return encode(
        {
            "critical": {
                "identity": {"docker-reference": reference.rpartition(":")[0]},
                "image": {"docker-manifest-digest": manifest},
                "type": "cosign container image signature",
            },
            "optional": None,
        }
    )


def sign(key: ec.EllipticCurvePrivateKey, data: bytes) -> str:
    """The signature in base64."""
    return base64.b64encode(key.sign(data, _ALGORITHM)).decode()


def is_valid(key: ec.EllipticCurvePublicKey, data: bytes, signature: str) -> bool:
    try:
        key.verify(base64.b64decode(signature), data, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def seal(key: ec.EllipticCurvePrivateKey, statement: bytes) -> bytes:
    """A signed in-toto statement: one line of a bundle."""
    signature = sign(key, encode_for_signing(statement))
    return encode(
        {
            "payload": base64.b64encode(statement).decode(),
            "payloadType": PAYLOAD,
            "signatures": [{"sig": signature}],
        }
    )


def encode_for_signing(statement: bytes) -> bytes:
    """What DSSE signs: the type and the text, each with its length."""
    return b"DSSEv1 %d %s %d %s" % (len(PAYLOAD), PAYLOAD.encode(), len(statement), statement)

"""aiohttp, imported without the certificates of the system.

aiohttp makes two TLS contexts with them when it is imported, and to read the certificates takes
longer than all the rest of it. claimctl needs neither: ``connection.Tls`` makes the context of a
connection.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["HttpProcessingError", "aiohttp"]

_VARIABLE = "SSL_CERT_FILE"
"""Where OpenSSL looks for the file with all certificates. It looks into a folder later."""


@contextmanager
def _no_file_of_certificates() -> Iterator[None]:
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = os.devnull
    try:
        yield
    finally:
        del os.environ[_VARIABLE]
        if before is not None:
            os.environ[_VARIABLE] = before


with _no_file_of_certificates():
    import aiohttp
    from aiohttp.http_exceptions import HttpProcessingError

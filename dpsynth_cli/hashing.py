"""Documents as bytes, the same for equal documents, and what is told of bytes: their hash."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from dpsynth_cli import disk


def canonical(document: Any) -> bytes:
    """JSON in ASCII with sorted keys and no spaces, so that equal documents have equal bytes.

    >>> canonical({"b": 1, "a": "é"})
    b'{"a":"\\\\u00e9","b":1}'
    """
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def sha256(data: bytes) -> str:
    """The hexadecimal SHA-256 of published bytes."""
    return hashlib.sha256(data).hexdigest()


def file_sha256(path: Path) -> str:
    """The same of a published file, a piece at a time."""
    digest = hashlib.sha256()
    with disk.open_to_read(path) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()

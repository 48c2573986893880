"""Addresses of ledgers on a server."""

from __future__ import annotations

import re


def without_password(words: str) -> str:
    """The address as it may be shown and kept.

    >>> without_password("postgresql://ann:secret@db.example.org/budget?sslpassword=secret&port=5")
    'postgresql://ann@db.example.org/budget?port=5'
    """
    bare = re.sub(r"//([^/?#:@]*):[^/?#]*@", r"//\1@", words)
    return re.sub(r"(?<=[?&])(ssl)?password=[^&#]*&?", "", bare).rstrip("?&")

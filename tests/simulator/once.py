"""What is computed once and kept: functions whose outcome follows from their arguments, and from nothing that
a machine does. A schedule reads an entry of its ledger a dozen times, and prices few answers as often.

Documents have their words and not their indentation, which would take a fifth of a schedule's time.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from dpsynth_cli.release.documents import audit
from dpsynth_cli.trusted.core import accountant
from dpsynth_cli.trusted.ledger import chain

KEPT = 4096  # outcomes


def as_text(document: Any) -> bytes:
    return (json.dumps(document, ensure_ascii=False) + "\n").encode()


PURE = ((chain, "entry_of"), (accountant, "price"))
_REAL = {(place, name): getattr(place, name) for place, name in PURE}


@cache
def _kept(place: Any, name: str) -> Callable[..., Any]:
    return lru_cache(maxsize=KEPT)(_REAL[place, name])


def cheaper() -> list[tuple[Any, str, Any]]:
    """Where, which name, and what it is instead."""
    return [
        (audit, "as_text", as_text),
        *((place, name, _kept(place, name)) for place, name in PURE),
    ]

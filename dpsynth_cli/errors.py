"""Every error that a user can cause: what happened, what it cost, what to do next.

One handler at the top of the command line prints these and exits with their code; everything below
raises. Messages name files, keys and columns, never the content of a cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NOTHING_SPENT = "Nothing was read and nothing was spent."


class DpsynthError(Exception):
    """An error with its own exit code and a message in three parts; `found` is what --json says beside it."""

    exit_code = 1

    def __init__(
        self,
        happened: str,
        cost: str = NOTHING_SPENT,
        next_step: str = "",
        found: Mapping[str, Any] | None = None,
    ) -> None:
        self.happened, self.cost, self.next_step, self.found = happened, cost, next_step, found or {}
        super().__init__(happened)

    def __str__(self) -> str:
        rest = " ".join(part for part in (self.cost, self.next_step) if part)
        return f"{self.happened}\n{rest}" if rest else self.happened


class UsageError(DpsynthError):
    """The command line or the spec is not valid."""

    exit_code = 2


class BudgetError(DpsynthError):
    """The budget does not allow it; nothing was read, nothing was spent."""

    exit_code = 3


class VerificationError(DpsynthError):
    """Files, transcript, audit or ledger do not agree with each other."""

    exit_code = 4


class FileError(DpsynthError):
    """A file cannot be read or written."""

    exit_code = 5


class MemoryShort(DpsynthError):
    """There is not enough memory; the same exit code as for a disk that is full."""

    exit_code = 5

    def __init__(self, cost: str = "") -> None:
        super().__init__(
            "there is not enough memory.", cost, "Free some, or release fewer columns, cells or rows."
        )


class Interrupted(DpsynthError):
    """Somebody stopped it: Ctrl-C (130) or SIGTERM (143)."""

    def __init__(self, exit_code: int) -> None:
        super().__init__("interrupted.")
        self.exit_code = exit_code

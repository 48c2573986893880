"""What the spec may say about the form of a CSV file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CsvOptions:
    """How a CSV input is cut into cells; `multiline` lets a quoted field contain line breaks."""

    multiline: bool = False
    delimiter: str = ","

"""How cells write what they say: the decimal sign, a currency, the order of a date, marks of missing cells.

A format is public and part of a column's declaration. Cells are read by it in `trusted/rows/formatted.py`,
and the synthetic CSV file is written by it in `release/files/csv_text.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property

GAPS = {" ": (" ", "\u00a0", "\u202f"), "'": ("'", "\u2019")}  # what is read as the declared thousands sign
MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
ZONE = r"(?:Z|[+-](?:[01][0-9]|2[0-3]):?[0-5][0-9])"
_MINUTE = 60_000_000
RESOLUTION = (("f", 1), ("S", 1_000_000), ("M", _MINUTE), ("HI", 60 * _MINUTE), ("", 1440 * _MINUTE))


@dataclass(frozen=True)
class CellFormat:
    """How a column writes its cells; by default as `dpsynth_cli.numbers` does.

    >>> CellFormat(currency="1 €").currency_signs, CellFormat(currency="$").currency_signs
    (('', ' €'), ('$', ''))
    """

    decimal: str = "."
    thousands: str = ""
    currency: str = ""
    percent: bool = False
    date: str = ""
    missing: tuple[str, ...] = ()
    true: tuple[str, ...] = ()
    false: tuple[str, ...] = ()

    @property
    def plain_numbers(self) -> bool:
        return self.decimal == "." and not (self.thousands or self.currency or self.percent)

    @property
    def currency_signs(self) -> tuple[str, str]:
        """What stands before and after an amount, as it is written."""
        before, one, after = self.currency.partition("1")
        return (before, after) if one else (self.currency, "")

    @cached_property
    def truth(self) -> dict[str, int]:
        """The declared words of a boolean column; none where none is declared."""
        return dict.fromkeys(self.false, 0) | dict.fromkeys(self.true, 1)


PLAIN = CellFormat()


# --- dates ----------------------------------------------------------------------------------------------

DIGITS = {  # of a directive: how many at least and at most
    "Y": (4, 4), "y": (2, 2), "m": (1, 2), "d": (1, 2), "H": (1, 2), "I": (1, 2), "M": (1, 2), "S": (1, 2),
    "f": (1, 6),
}  # fmt: skip
WORDS = {
    "b": "|".join(month[:3] for month in MONTHS),
    "B": "|".join(MONTHS),
    "p": "am|pm",
}
DIRECTIVES = "%d %m %b %B %Y %y %H %I %p %M %S %f %z"


class NotADateFormat(ValueError):
    """A text that is no format of dates; it says why."""


@dataclass(frozen=True)
class DateFormat:
    """A format of days or times: literal texts and directives, in order; a directive is one letter."""

    parts: tuple[tuple[str, bool], ...]  # (a literal, False) or (a letter, True)

    @property
    def letters(self) -> tuple[str, ...]:
        return tuple(text for text, directive in self.parts if directive)

    @property
    def resolution(self) -> int:
        """How many microseconds its finest part spans."""
        found = set(self.letters)
        return next(span for letters, span in RESOLUTION if not letters or found & set(letters))

    @cached_property
    def pattern(self) -> str:
        """For RE2 on the bytes of a cell: one group a directive, one way on from each place.

        A number may lack its leading zero, but not beside another one: 20190723 has one reading.
        """
        pieces = []
        for i, (text, directive) in enumerate(self.parts):
            if not directive:
                pieces.append(in_bytes(text))
                continue
            if text in WORDS:
                piece = f"(?i:{WORDS[text]})"
            elif text == "z":
                piece = ZONE
            else:
                least, most = DIGITS[text]
                beside = self.parts[max(0, i - 1) : i] + self.parts[i + 1 : i + 2]
                if any(other and letter in DIGITS for letter, other in beside):
                    least = most
                piece = f"[0-9]{{{least},{most}}}"
            pieces.append(f"(?P<{text}>{piece})")
        return f"^{''.join(pieces)}$"


@cache
def date_format(text: str) -> DateFormat:
    """The parts of a format such as %d/%m/%Y; refuses what has no one meaning.

    >>> date_format("%d.%m.%y").pattern
    '^(?P<d>[0-9]{1,2})\\\\x2e(?P<m>[0-9]{1,2})\\\\x2e(?P<y>[0-9]{2,2})$'
    """
    parts: list[tuple[str, bool]] = []
    for found in re.finditer(r"%(.?)|[^%]+", text, re.DOTALL):
        letter = found[1]
        if letter is None or letter == "%":
            parts.append((found[0] if letter is None else "%", False))
        elif letter and f"%{letter}" in DIRECTIVES.split():
            parts.append((letter, True))
        else:
            raise NotADateFormat(f"%{letter} is not one of {DIRECTIVES}")
    form = DateFormat(tuple(parts))
    letters = form.letters
    if len(set(letters)) < len(letters):
        raise NotADateFormat("it has a directive twice")
    for choices, words in (
        ("d", "a day (%d)"),
        ("mbB", "a month (%m, %b or %B)"),
        ("Yy", "a year (%Y or %y)"),
    ):
        if len(set(letters) & set(choices)) != 1:
            raise NotADateFormat(f"it must have {words}, once")
    if len({"H", "I"} & set(letters)) > 1 or ("I" in letters) != ("p" in letters):
        raise NotADateFormat("an hour is %H, or %I with %p")
    clock = "".join(letter for letter in "HIMSf" if letter in letters).replace("I", "H")
    if not "HMSf".startswith(clock) or ("z" in letters and not clock):
        raise NotADateFormat("minutes need hours, seconds need minutes, a zone needs a clock")
    return form


def in_bytes(text: str) -> str:
    """A text as a pattern for RE2 on bytes.

    >>> in_bytes("€.")
    '\\\\xe2\\\\x82\\\\xac\\\\x2e'
    """
    return "".join(f"\\x{byte:02x}" for byte in text.encode())

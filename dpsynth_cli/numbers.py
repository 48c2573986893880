"""Numbers, days and moments as text: one grammar for specs, options, rules, constraints and cells.

A number is a decimal, with an exponent or without; a day is YYYY-MM-DD; a moment is a day with a clock, and
with a zone or in UTC. Nothing else is one, on any version of Python: no 20080101, no 1_000, no 0x10. Every
pattern is matched in time linear in the text: from each place there is one way on, and the exact calendar is
in the pattern. `trusted/rows/text.py` reads cells, by the million, by the same patterns.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

LONGEST = 300  # characters of a number in a spec or an option
RANGE = "between 1e-300 and 1e300"  # of a number that is not 0
_MOST = Fraction(10**300)

EXPONENT = r"(?:[eE][+-]?[0-9]+)?"
UNSIGNED = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)" + EXPONENT
NUMBER = r"[+-]?" + UNSIGNED
_LEAP = r"(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
DAY = (
    r"(?:[0-9]{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)"
    rf"|(?:0[13578]|1[02])-31)|{_LEAP}-02-29)"
)
CLOCK = r"[ T](?:[01][0-9]|2[0-3])(?::[0-5][0-9](?::[0-5][0-9](?:\.[0-9]+)?)?)?"
ZONE = r"(?:Z|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)"

_NUMBER, _DAY, _MOMENT = re.compile(NUMBER), re.compile(DAY), re.compile(f"({DAY})({CLOCK})({ZONE})?")
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_FIRST, _END = (days * 86_400_000_000 for days in (-719_162, 2_932_897))  # of the years 1 to 9999


def decimal(text: str) -> Fraction | None:
    """The number that a text writes, exactly; None where it writes none, or one not 0 beyond 1e±300.

    >>> decimal("1e-1"), decimal("-.5"), decimal("1_000"), decimal("1e99999999"), decimal("1e400")
    (Fraction(1, 10), Fraction(-1, 2), None, None, None)
    """
    if len(text) > LONGEST or not _NUMBER.fullmatch(text):
        return None
    exponent = re.split("[eE]", text)[1:]
    if exponent and abs(int(exponent[0])) > 2 * LONGEST:  # what it would take to write it out
        return None
    number = Fraction(text)
    return number if number == 0 or 1 / _MOST <= abs(number) <= _MOST else None


def whole(text: str) -> int | None:
    """The whole number that a text writes.

    >>> whole("12"), whole("1e3"), whole("1.5"), whole("twelve")
    (12, 1000, None, None)
    """
    number = decimal(text)
    return None if number is None or number.denominator != 1 else int(number)


def day(text: str) -> int | None:
    """Days from 1970-01-01 to a day; None where the text is none. The calendar of specs begins in year 1.

    >>> day("1970-01-02"), day("2021-02-29"), day("20080101"), day("1970-01-02T00:00")
    (1, None, None, None)
    """
    if not _DAY.fullmatch(text) or text.startswith("0000"):
        return None
    return (date(int(text[:4]), int(text[5:7]), int(text[8:])) - _EPOCH.date()).days


def moment(text: str) -> int | None:
    """Microseconds from 1970-01-01 UTC to a moment, a fraction cut there; None where the text is none.

    >>> moment("1970-01-01 00:00:01"), moment("1970-01-01T01:00:00.5+01:00"), moment("1970-01-01")
    (1000000, 500000, None)
    """
    found = _MOMENT.fullmatch(text)
    since = day(found[1]) if found else None
    if not found or since is None:
        return None
    whole, _, fraction = found[2][1:].partition(".")
    hour, minute, second = (int(part) for part in [*whole.split(":"), "0", "0"][:3])
    micros = ((since * 24 + hour) * 60 + minute) * 60_000_000 + second * 1_000_000
    micros += int(fraction[:6].ljust(6, "0"))
    micros -= _ahead(found[3] or "Z") * 60_000_000
    return micros if _FIRST <= micros < _END else None  # a zone may lead out of the calendar


def _ahead(zone: str) -> int:
    """Minutes that a zone is ahead of UTC."""
    if zone == "Z":
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[3:].lstrip(":") or 0)
    return -minutes if zone[0] == "-" else minutes


def day_text(days: int) -> str:
    """A day as `day` reads it.

    >>> day_text(1)
    '1970-01-02'
    """
    return (_EPOCH.date() + timedelta(days=days)).isoformat()


def moment_text(micros: int) -> str:
    """A moment as `moment` reads it.

    >>> moment_text(1_500_000)
    '1970-01-01T00:00:01.500000'
    """
    return (_EPOCH + micros * _MICROSECOND).isoformat()


# --- amounts, for people and for documents ---------------------------------------------------------------


def exact(value: Fraction) -> str:
    """A finite decimal as text, so that Fraction gives it back.

    >>> exact(Fraction("0.10")), exact(Fraction("1e-9")), exact(Fraction(100))
    ('0.1', '1E-9', '100')
    """
    context = Context(prec=2000)
    short = context.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(context)
    return format(short, "f") if -6 <= short.adjusted() <= 15 else str(short)


def shown(amount: Fraction, *, up: bool = True, digits: int = 12) -> str:
    """The amount for people: exact as a decimal of so many digits if it is one, else rounded, and said so.

    Rounding goes up for what is needed, down for what is left: then a shortage always shows.

    >>> shown(Fraction(1, 10)), shown(Fraction(1, 10**30)), shown(Fraction(2, 3)), shown(Fraction(1200))
    ('0.1', '1e-30', 'about 0.666667', '1200')
    """
    short = decimal_of(amount, up=up, digits=digits)
    return _text(short) if Fraction(short) == amount else f"about {_text(short)}"


def enough(amount: Fraction, digits: int = 12) -> str:
    """A decimal that is at least the amount, to type on a command line: exact if digits allow.

    >>> enough(Fraction(1, 3))
    '0.333334'
    """
    return _text(decimal_of(amount, up=True, digits=digits))


def decimal_of(amount: Fraction, *, up: bool, digits: int = 12) -> Decimal:
    """The amount exactly if so many digits hold it, else rounded to 6 digits in the given direction."""
    rounding = ROUND_CEILING if up else ROUND_FLOOR
    for precision in (digits, 6):
        context = Context(prec=precision, rounding=rounding, Emin=-100_000, Emax=100_000)
        short = context.divide(Decimal(amount.numerator), Decimal(amount.denominator))
        if Fraction(short) == amount:
            break
    return short


def _text(number: Decimal) -> str:
    if number == 0:
        return "0"
    plain = number.normalize(Context(prec=1000))
    return str(plain).lower() if plain.adjusted() < -6 else f"{plain:f}"

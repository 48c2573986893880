"""Evil rows: whatever a hostile data owner might put into one record, as CSV lines and as Parquet cells.

python -m tests.whole.evil TABLE        # reads it twice; prints CPU seconds, peak MB and the rows
"""

from __future__ import annotations

import json
import resource
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa

from dpsynth_cli.domain import Column
from dpsynth_cli.numbers import day, moment
from dpsynth_cli.trusted.rows.problems import count_problems
from dpsynth_cli.trusted.rows.read import open_scan

COLUMNS = (
    Column("age", "integer", lower=0, upper=120, nullable=True),
    Column("score", "continuous", lower=-1.0, upper=1.0),
    Column("group", "nominal", categories=("a", "b", "c,d", "é"), other="b"),
    Column("smoker", "boolean", categories=("false", "true"), nullable=True),
    Column("seen", "date", lower=day("2020-01-01"), upper=day("2020-12-31"), nullable=True),
    Column(
        "at", "datetime", lower=moment("2020-01-01 00:00"), upper=moment("2020-12-31 00:00"), nullable=True
    ),
)
NAMES = [column.name for column in COLUMNS]
SPEC = """\
dpsynth: 1
name: evil
input: {input}
output: out/made.csv
privacy: {{epsilon: 1, dataset: evil}}
mechanism: {{name: marginals}}
columns:
  age:    {{type: integer, bounds: [0, 120], nullable: true}}
  score:  {{type: continuous, bounds: [-1, 1]}}
  group:  {{type: nominal, categories: [a, b, "c,d", é], other: b}}
  smoker: {{type: boolean, nullable: true}}
  seen:   {{type: date, bounds: [2020-01-01, 2020-12-31], nullable: true}}
  at:     {{type: datetime, bounds: [2020-01-01 00:00, 2020-12-31 00:00], nullable: true}}
"""
MIB = 2**20


def ordinary(rows: int) -> dict[str, pa.Array]:
    """A table as it should be, with some cells missing."""
    rng = np.random.default_rng(1)
    days = 18262 + rng.integers(0, 366, rows).astype(np.int32)
    return {
        "age": pa.array(rng.integers(0, 100, rows), mask=rng.random(rows) < 0.1),
        "score": pa.array(rng.uniform(-1, 1, rows).round(4)),
        "group": pa.array(np.array(["a", "b", "c,d", "é"])[rng.integers(0, 4, rows)]),
        "smoker": pa.array(rng.random(rows) < 0.3),
        "seen": pa.array(days).cast(pa.date32()),
        "at": pa.array(days.astype(np.int64) * 86_400_000_000 + rng.integers(0, 86_400, rows) * 10**6).cast(
            pa.timestamp("us")
        ),
    }


def csv_lines(table: dict[str, pa.Array]) -> list[bytes]:
    def written(cell: object) -> str:
        text = "" if cell is None else str(cell)
        return f'"{text}"' if "," in text else text

    rows = zip(*(array.to_pylist() for array in table.values()), strict=True)
    return [",".join(map(written, row)).encode() for row in rows]


def as_csv(path: Path, lines: list[bytes]) -> Path:
    path.write_bytes(b"\n".join([",".join(NAMES).encode(), *lines, b""]))
    return path


# --- CSV ----------------------------------------------------------------------------------------------

CELLS = {
    "digits and an x": b"9" * (MIB // 8) + b"x",
    "digits": b"1" * (MIB // 8),
    "digits to the limit of a cell": b"1" * 4096,
    "digits past the limit of a cell": b"1" * 4097,
    "a point and digits": b"." + b"0" * (MIB // 8) + b"1",
    "points": b"." * (MIB // 8),
    "points between digits": b"1." * (MIB // 16),
    "signs": b"+-" * (MIB // 16),
    "exponents": b"1e" * (MIB // 16),
    "a huge exponent": b"1e" + b"9" * 4000,
    "beyond a float": b"-1e400",
    "below a float": b"1e-400",
    "halfway between floats": b"9007199254740993" + b"0" * 3000 + b".0001",
    "minus nothing": b"-0.0",
    "not a number, with a payload": b"nan(0xdeadbeef)",
    "infinity": b"-InFiNiTy",
    "hexadecimal": b"0x1p-3",
    "digits of another script": "٣٤".encode(),
    "a number with a NUL": b"4\x001",
    "blanks": b" " * (MIB // 8),
    "blanks and a number": b" " * 4000 + b"41" + b"\t" * 50,
    "all kinds of blanks": b"\v\f\t 41 \x85\xa0",
    "an ideographic space": "\u300041\u3000".encode(),
    "bytes that are no text": b"\xff\xfe\x80\xc3" * 9,
    "half a surrogate": b"\xed\xa0\x80",
    "a mark of byte order": b"\xef\xbb\xbf41",
    "NULs": b"\0" * 5000,
    "a unit separator": b"4\x1f1",
    "a lone return": b"4\r1",
    "returns": b"\r" * 5000,
    "quotes": b'"' * (MIB // 8),
    "quotes, one more": b'"' * (MIB // 8 + 1),
    "a stray quote": b'4"1',
    "an opening quote": b'"41',
    "a closing quote": b'41"',
    "doubled quotes": b'"' + b'""' * (MIB // 20) + b'"',
    "a quoted separator": b'"a,b"',
    "a formula": b"=1+1|cmd",
    "a huge label": b"label " * (MIB // 48),
    "a label and blanks": b"a" + b" " * 4095,
    "zones": b"2020-03-01 12:00:00" + b"+01:00" * 5000,
    "a zone of a day": b"2020-03-01 12:00:00+24:00",
    "a zone without a clock": b"2020-03-01+01:00",
    "a fraction of four thousand digits": b"2020-03-01 12:00:00." + b"9" * 4000,
    "a fraction past the limit": b"2020-03-01 12:00:00." + b"9" * 100_000,
    "the year 0": b"0000-02-29",
    "the year 9999": b"9999-12-31 23:59:59.999999999-23:59",
    "the 31st of November": b"2020-11-31",
    "the 29th of February": b"1900-02-29",
    "a leap second": b"2016-12-31 23:59:60",
    "midnight at the end": b"2020-01-01 24:00:00",
    "a week": b"2020-W01-1",
    "dashes": b"2020-" * 20_000,
    "colons": b"12:" * 20_000,
    "a word for true in capitals": b"TRUE",
    "a dotted capital I": "yes İ".encode(),
    "a word for missing": b"NaN",
}
LINES = {name: b",".join([cell] * len(COLUMNS)) for name, cell in CELLS.items()} | {
    f"{name}, in one column": b"41,0.5,a," + cell + b",2020-03-01,2020-03-01 12:00:00"
    for name, cell in CELLS.items()
} | {
    "nothing": b"",
    "a return": b"\r",
    "one separator": b",",
    "separators": b"," * (MIB // 2),
    "separators, one short": b"," * (len(COLUMNS) - 2),
    "a line at the limit": b"1," * 5 + b"x" * (MIB - 10),
    "a line past the limit": b"1," * 5 + b"x" * (MIB - 9),
    "a line of ten megabytes": b"9" * (10 * MIB),
    "a line of quotes past the limit": b'"' * (3 * MIB),
    "the header again": ",".join(NAMES).encode(),
    "a quoted line break": b'41,0.5,"a\nb",true,2020-03-01,2020-03-01',
}  # fmt: skip


# --- Parquet ------------------------------------------------------------------------------------------


def _typed(name: str, type: pa.DataType, *cells: object) -> tuple[str, pa.Array]:
    return name, pa.array(cells, type)


def _bits(kind: str, *numbers: int) -> pa.Array:
    """Floats by their bits: NaNs with payloads, signalling ones too."""
    size = {"e": 2, "f": 4, "d": 8}[kind]
    data = b"".join(number.to_bytes(size, "little") for number in numbers)
    type = {"e": pa.float16(), "f": pa.float32(), "d": pa.float64()}[kind]
    return pa.Array.from_buffers(type, len(numbers), [None, pa.py_buffer(data)])


def _many(labels: int, index: pa.DataType) -> pa.Array:
    return pa.DictionaryArray.from_arrays(
        pa.array(np.arange(labels), index), pa.array([f"label {i}" for i in range(labels)])
    )


_ENDS = (2**63 - 1, -(2**63), 0)
_TEXT = list(CELLS.values())
PARQUET: dict[str, tuple[str, pa.Array]] = (
    {f"{name} as text": _typed(name, pa.binary(), *_TEXT) for name in NAMES}
    | {f"{name} as large text": _typed(name, pa.large_binary(), *_TEXT) for name in NAMES}
    | {f"{name} as nothing": (name, pa.nulls(3)) for name in NAMES}
    | {
        f"{name} as times in {unit}, {zone}": (name, pa.array(_ENDS).cast(pa.timestamp(unit, zone)))
        for name in ("seen", "at", "group")
        for unit in ("s", "ms", "us", "ns")
        for zone in (None, "UTC", "Europe/Berlin", "-12:00")
        if unit != "s"  # Parquet has no seconds, and a writer refuses what milliseconds do not hold
    }
    | {
        f"{name} with labels past {index}": (name, _many(2 ** (index.bit_width - 1), index))
        for name in ("group", "age", "seen")
        for index in (pa.int8(), pa.int16())
        if (name, index) != ("seen", pa.int8())  # which has more days than that already
    }
    | {
        "a huge label": _typed("group", pa.string(), "x" * 5_000_000),
        "huge digits": _typed("age", pa.string(), "9" * 5_000_000 + "x"),
        "a huge label, often": ("group", pa.DictionaryArray.from_arrays(
            pa.array([0] * 20_000, pa.int32()), pa.array(["y" * MIB]))),
        "huge digits, often": ("age", pa.DictionaryArray.from_arrays(
            pa.array([0] * 20_000, pa.int32()), pa.array(["1" * MIB]))),
        "a hundred thousand labels": ("group", _many(100_000, pa.int32())),
        "a hundred thousand texts": ("age", _many(100_000, pa.int32())),
        "extreme integers": _typed("age", pa.int64(), *_ENDS),
        "extreme unsigned integers": _typed("age", pa.uint64(), 2**64 - 1, 2**63, 2**53 + 1),
        "integers as labels": _typed("group", pa.int64(), *_ENDS),
        "decimals": _typed("score", pa.decimal128(38, 10), Decimal("9" * 28), Decimal("-1e-10"), None),
        "large decimals": _typed("age", pa.decimal256(76, 2), Decimal("9" * 74), Decimal("-" + "9" * 74)),
        "decimals as labels": _typed("group", pa.decimal128(38, 37), Decimal("1e-37"), Decimal(9)),
        "NaNs with payloads": ("score", _bits("d", 0x7FF0000000000001, 2**64 - 1, 0x7FF8DEADBEEF0000)),
        "signalling NaNs in 32 bits": ("age", _bits("f", 0x7F800001, 0xFF800001, 0x7FC00000)),
        "NaNs as labels": ("group", _bits("d", 0x7FF0000000000001, 0xFFF0000000000000, 0x8000000000000000)),
        "half floats": ("score", _bits("e", 0x7C00, 0xFC00, 0x7C01, 0x8000, 0x0001)),
        "half floats as labels": ("group", _bits("e", 0x7C00, 0x7C01, 0x8000, 0x3C00)),
        "subnormal floats": _typed("score", pa.float64(), 5e-324, -5e-324, -0.0, 1.7e308),
        "floats as truth": _typed("smoker", pa.float64(), 1.0, -0.0, 1e308, float("nan")),
        "integers as truth": _typed("smoker", pa.int8(), -128, 2, 1),
        "extreme days": ("seen", pa.array([2**31 - 1, -(2**31)], pa.int32()).cast(pa.date32())),
        "extreme days as labels": ("group", pa.array([2**31 - 1, -(2**31)], pa.int32()).cast(pa.date32())),
        "fixed bytes": _typed("group", pa.binary(4), b"\xff\0a ", b"a   "),
        "views of text": ("group", pa.array(["x" * 100_000, "a"], pa.string_view())),
    }
)  # fmt: skip

# Columns of types that are refused by the schema alone, whatever is in them.
REFUSED: dict[str, tuple[str, pa.Array]] = {
    "lists": _typed("score", pa.list_(pa.float64()), [0.5], [], None),
    "structures": _typed("group", pa.struct([("a", pa.string())]), {"a": "a"}, None),
    "maps": ("group", pa.array([[("a", "b")]], pa.map_(pa.string(), pa.string()))),
    "durations": _typed("age", pa.duration("us"), 2**62),
    "clocks": _typed("at", pa.time64("us"), 5),
    "identifiers": ("group", pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16], pa.binary(16)))),
    "documents": ("group", pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}']))),
}


def with_type(table: dict[str, pa.Array], name: str, type: pa.DataType) -> dict[str, pa.Array]:
    """The same rows with a column of the type of an evil cell: as near as it can be told, else of nulls."""
    plain = type.value_type if pa.types.is_dictionary(type) else type
    try:
        told = table[name].cast(plain, safe=False)
    except pa.ArrowException:
        try:
            told = table[name].cast(pa.string()).cast(plain)
        except pa.ArrowException:
            told = pa.nulls(len(table[name]), plain)
    return table | {name: told.dictionary_encode().cast(type) if plain is not type else told}


def with_rows(table: dict[str, pa.Array], name: str, evil: pa.Array, at: int) -> dict[str, pa.Array]:
    """The table with evil cells in rows of their own, all else missing there."""
    grown = {}
    for each, array in table.items():
        inside = evil if each == name else pa.nulls(len(evil), array.type)
        parts = [array[:at], inside, array[at:]]
        grown[each] = pa.chunked_array([part.cast(evil.type) if each == name else part for part in parts])
        if evil.type == pa.dictionary(pa.int32(), pa.string()):  # else the writer writes them out
            grown[each] = grown[each].unify_dictionaries().combine_chunks()
    return grown


# --- what a table becomes, and what that takes ----------------------------------------------------------


def rows_of(path: Path, columns: tuple[Column, ...] = COLUMNS, **private: int) -> Counter:
    """How often each tuple of codes is in a file: order does not matter, because only sums leave."""
    scan, found = open_scan(str(path), columns, **private), Counter()
    for piece in scan.pieces():
        codes = scan.encode(piece)
        found.update(zip(*(array.tolist() for array in codes.values()), strict=True))
    scan.close()
    return found


def main() -> None:
    scan, rows = open_scan(sys.argv[1], COLUMNS), 0
    for piece in scan.pieces():
        rows += len(scan.encode(piece)["age"])
    assert count_problems(scan).rows == rows
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, rows]))


if __name__ == "__main__":
    main()

"""Encodings: decoded by total functions, and damage stays in its own line, however the file is read."""

from __future__ import annotations

import gzip
import io
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth_cli.domain import Column, CsvOptions
from dpsynth_cli.encodings import ENCODINGS, MORE_BYTES, ONE_BYTE, UTF_16
from dpsynth_cli.errors import FileError
from dpsynth_cli.trusted.rows.csv_encoding import Decoded
from dpsynth_cli.trusted.rows.read import open_scan

CITIES = ("Köln", "Málaga", "Paris", "other")
COLUMNS = (
    Column("größe", "integer", lower=0, upper=99, nullable=True),
    Column("ort", "nominal", categories=CITIES, other="other"),
)
TEXT = "größe,ort\r\n1,Köln\r\n2,Málaga\r\n3,Paris\r\n"


def decoded(data: bytes, encoding: str, at_once: int) -> bytes:
    return io.BufferedReader(Decoded(io.BytesIO(data), encoding, at_once)).read()


def rows_of(path, encoding: str, **options) -> list[tuple[int, ...]]:
    scan = open_scan(str(path), COLUMNS, CsvOptions(encoding=encoding, **options))
    found = []
    for piece in scan.pieces():
        codes = scan.encode(piece)
        found += zip(*(codes[column.name].tolist() for column in COLUMNS), strict=True)
    scan.close()
    return found


@pytest.mark.parametrize("encoding", [e for e in ENCODINGS if e not in UTF_16 and "utf" not in e])
def test_no_two_bytes_take_the_line_break_that_follows_them(encoding):
    for pair in itertools.product(range(256), repeat=2):
        before = bytes(pair)
        if pair[0] == 10 or (pair[1] == 10 and encoding in ONE_BYTE):
            continue
        text = (before + b"\nx,1\n").decode(encoding, "replace")
        assert text.endswith("\nx,1\n"), (encoding, before)


@pytest.mark.parametrize(
    "encoding", ["latin-1", "cp1252", "cp850", "mac-roman", "utf-16", "utf-16-be", "utf-8-sig"]
)
def test_a_file_in_any_encoding_has_the_same_rows(tmp_path, encoding):
    path = tmp_path / "t.csv"
    path.write_bytes(TEXT.encode(encoding))
    assert rows_of(path, encoding) == [(1, 0), (2, 1), (3, 2)]
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(TEXT.encode(encoding)))
    assert rows_of(packed, encoding) == [(1, 0), (2, 1), (3, 2)]


@given(st.binary(max_size=40), st.sampled_from([*UTF_16, "cp1252", *MORE_BYTES]), st.integers(1, 9))
def test_how_a_stream_is_read_changes_nothing(data, encoding, at_once):
    whole = decoded(data, encoding, 1000)
    assert decoded(data, encoding, at_once) == whole
    whole.decode()  # it is UTF-8, always


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("damage", [(0xD800,), (0xDC00,), (0xDC00, 0xD800), (0,), (0xFFFE,), (0xFEFF,)])
def test_half_a_pair_changes_no_other_cell(tmp_path, encoding, damage):
    lines = ["größe,ort", "1,Köln", f"2,{''.join(map(chr, damage))}", "3,Paris", ""]
    path = tmp_path / "t.csv"
    path.write_bytes("\n".join(lines).encode(encoding, "surrogatepass"))
    assert rows_of(path, encoding) == [(1, 0), (2, 3), (3, 2)]


def test_a_last_odd_byte_is_in_the_last_cell_alone(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("größe,ort\n1,Köln\n2,Paris".encode("utf-16") + b"\x41")
    assert rows_of(path, "utf-16") == [(1, 0), (2, 3)]


def test_bytes_that_mean_nothing_are_an_unlisted_label(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("größe,ort\n1,Köln\n".encode("cp1252") + b'2,\x81\x8d\n3,"\x90\n4,Paris\n')
    assert rows_of(path, "cp1252") == [(1, 0), (2, 3), (3, 3), (4, 2)]


def test_parts_of_a_file_in_one_byte_have_its_rows_and_utf_16_has_no_parts(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(("sep=,\r\ngröße,ort\r\n" + "7,Köln\r\n" * 500).encode("latin-1"))
    scan = open_scan(str(path), COLUMNS, CsvOptions(encoding="latin-1"))
    found = []
    for part in scan.parts(300):
        for piece in part.pieces():
            found += part.encode(piece)["ort"].tolist()
    assert found == [0] * 500
    path.write_bytes(TEXT.encode("utf-16"))
    assert open_scan(str(path), COLUMNS, CsvOptions(encoding="utf-16")).whole == "CSV in utf-16"


def test_another_encoding_or_separator_is_told_with_the_key_that_cures_it(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(TEXT.encode("latin-1"))
    with pytest.raises(FileError, match=r"set csv: \{encoding: cp1252\}"):
        open_scan(str(path), COLUMNS)
    path.write_bytes(TEXT.encode("utf-16"))
    with pytest.raises(FileError, match=r"set csv: \{encoding: utf-16\}"):
        open_scan(str(path), COLUMNS)
    path.write_bytes(b"sep=;\n" + TEXT.replace(",", ";").encode())
    with pytest.raises(FileError, match=r"""separated by ';'.*\n.*Set csv: \{delimiter: ";"\} in the spec"""):
        open_scan(str(path), COLUMNS)
    assert rows_of(path, "utf-8", delimiter=";") == [(1, 0), (2, 1), (3, 2)]

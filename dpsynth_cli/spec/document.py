"""The keys of the whole document, and the effective document that an audit records."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from dpsynth_cli.encodings import ENCODINGS
from dpsynth_cli.spec.columns import COLUMNS, DEFAULTS
from dpsynth_cli.spec.evaluate import EPSILON, EVALUATE
from dpsynth_cli.spec.keys import Key, Kind, Section, as_it_is, written
from dpsynth_cli.spec.kinds import CONTROL, FLAG, SCALARS, choice, text, whole
from dpsynth_cli.spec.mechanism import MECHANISM, SPLIT
from dpsynth_cli.spec.paths import INPUT, OUTPUT
from dpsynth_cli.spec.privacy import BUDGET, LONGEST_NAME, PRIVACY
from dpsynth_cli.spec.reader import Wrong
from dpsynth_cli.spec.relation_keys import DERIVE, RULES
from dpsynth_cli.spec.tables import TABLES, tables_document
from dpsynth_cli.spec.yaml_nodes import Node, Scalar

VERSION = 1
_MOST_ROWS = 10**10
_LARGEST_SEED = 2**63 - 1
_SIGN = r"[\t !#-/:-@\[-`{-~]"  # ASCII, neither letter nor digit nor quotation mark
_NAME = f"text without / or \\, at most {LONGEST_NAME} characters, such as trips"
_ROWS = whole(f"noisy, or a whole number from 1 to {_MOST_ROWS}", 1, _MOST_ROWS)


def _name(node: Node) -> str:
    """A name that may also be part of a file's name."""
    name: str = text(_NAME, LONGEST_NAME).read(node)
    if "/" in name or "\\" in name:
        raise Wrong(_NAME)
    return name


def _rows(node: Node) -> int | None:
    noisy = isinstance(node, Scalar) and node.text == "noisy"
    return None if noisy else int(_ROWS.read(node))


def _delimiter(node: Node) -> str:
    if isinstance(node, Scalar) and re.fullmatch(_SIGN, node.text):
        return node.text
    raise Wrong('one ASCII sign such as ";", "|" or, for a tab, "\\t" (in double quotes)')


DPSYNTH = Key(
    "dpsynth",
    Kind(whole(f"{VERSION}, the version of the spec", VERSION, VERSION).read, {"const": VERSION}),
    f"the version of the format: `{VERSION}`",
    required=True,
    default=VERSION,
    of=lambda spec: VERSION,
)
NAME = Key(
    "name",
    Kind(
        _name,
        {"type": SCALARS, "pattern": rf"^(?!\s)[^{CONTROL}/\\]+(?<!\s)$", "maxLength": LONGEST_NAME},
    ),
    "the name of the release, in messages, in the ledger, in file names where the output is `-`; no slash, "
    f"at most {LONGEST_NAME} characters",
    required=True,
    default="",
)
ROWS = Key(
    "rows",
    Kind(
        _rows,
        {"anyOf": [{"enum": ["noisy"]}, dict(_ROWS.schema)]},
        lambda rows: "noisy" if rows is None else rows,
    ),
    "how many synthetic rows: `noisy`, which is what the private total says, or a number from 1 to 10^10",
)
ROWS_HINT = Key(
    "rows_hint",
    whole(f"a whole number from 1 to {_MOST_ROWS}, a public guess", 1, _MOST_ROWS),
    "a public guess of the number of rows, used to choose depths and cells instead of paying for one. Never "
    "the true count, unless that is public: a hint is published",
    of=attrgetter("domain.rows_hint"),
)
CSV = Section(
    "csv",
    (
        Key(
            "multiline",
            FLAG,
            "`true` if quoted fields contain line breaks; else one line is one row, whatever is in it",
            default=False,
        ),
        Key(
            "delimiter",
            Kind(_delimiter, {"type": "string", "pattern": f"^{_SIGN}$"}),
            'one ASCII sign, such as `";"` or `"\\t"`',
            default=",",
        ),
        Key(
            "encoding",
            choice(ENCODINGS),
            "the file's encoding: `utf-8`, `utf-8-sig` (with a mark at its start), `utf-16`, `latin-1`, "
            "`cp1252`, ...; the release is written in it",
            default="utf-8",
            brief=True,
        ),
        Key(
            "canonical",
            FLAG,
            "`true`: the release is plain CSV whatever the input is: UTF-8, commas, 1234.5, 2026-03-01, true "
            "and false, empty for missing; else it is written as the input is",
            default=False,
            brief=True,
        ),
    ),
    "how a CSV file is written",
    such_as="{multiline: true}",
)
SEED = Key(
    "seed",
    whole(f"a whole number from 0 to {_LARGEST_SEED}", 0, _LARGEST_SEED),
    "the seed of the random numbers that place points after the noise, recorded in the audit; default: a "
    "random one. It is never a seed of noise: noise has none",
)
SAMPLING = Section("sampling", (SEED,), "the seed of post-processing", such_as="{seed: 7}", of=as_it_is)

STRICT = Key(
    "strict",
    FLAG,
    "`true`: before the charge the first 131,072 rows are looked at, and the release is refused where more "
    "than half of a column is not as declared. That look costs nothing and its outcome is confidential; the "
    "key is left out of every public copy of the spec",
    default=False,
)

DOCUMENT = (
    DPSYNTH,
    NAME,
    INPUT,
    OUTPUT,
    ROWS,
    ROWS_HINT,
    PRIVACY,
    MECHANISM,
    DEFAULTS,
    COLUMNS,
    DERIVE,
    RULES,
    CSV,
    SAMPLING,
    EVALUATE,
    STRICT,
)


def effective(spec: Any) -> dict[str, Any]:
    """The document that says all of a Spec, defaults too; exact numbers are text."""
    return _of_table(spec) if spec.tables is None else tables_document(spec, spec.tables, _of_table)


def _of_table(spec: Any) -> dict[str, Any]:
    document = written(DOCUMENT, spec)
    del document[DEFAULTS.name]  # written out in every column
    if not spec.input:
        del document[INPUT.name]
    if spec.privacy.epsilon is None:  # by groups: no noise, and nothing to pay with
        document[ROWS.name] = spec.rows
        for key in BUDGET:
            document[PRIVACY.name].pop(key.name, None)  # some are brief
        document[MECHANISM.name][SPLIT.name] = {}
        del document[EVALUATE.name][EPSILON.name]
    return document


def by_name(document: Any) -> Any:
    """A recorded document lists its columns, since their order matters; a spec has them by name."""
    for key in ("columns", "derive") if isinstance(document, dict) else ():
        listed = document.get(key)
        if isinstance(listed, list) and all(_is_named(one) for one in listed):
            by_name = {
                one["name"]: one.get("is")
                if key == "derive"
                else {k: v for k, v in one.items() if k != "name"}
                for one in listed
            }
            document = document | {key: by_name} if len(by_name) == len(listed) else document
    tables = document.get(TABLES.name) if isinstance(document, dict) else None
    if isinstance(tables, list) and all(_is_named(one) for one in tables):
        named = {one["name"]: {k: v for k, v in _by_name(one).items() if k != "name"} for one in tables}
        document = document | {TABLES.name: named} if len(named) == len(tables) else document
    return document


def _by_name(document: dict[str, Any]) -> dict[str, Any]:
    return dict(by_name(document))


def _is_named(column: Any) -> bool:
    return isinstance(column, dict) and isinstance(column.get("name"), str)


def public_document(effective: Mapping[str, Any]) -> dict[str, Any]:
    """The effective document without where the data and the output are kept, and without `strict`: that a
    strict release was made tells that no column of its first rows was mostly junk.

    >>> public_document({"name": "trips", "input": "/secret/trips.csv", "output": "/home/ann/trips.csv"})
    {'name': 'trips', 'output': 'trips.csv'}
    """
    public = {key: value for key, value in effective.items() if key not in ("input", "strict")}
    if TABLES.name in public:
        return public | {TABLES.name: [public_document(table) for table in public[TABLES.name]]}
    return public | {"output": os.path.basename(public["output"])}


def tables_of(document: Any) -> list[Any]:
    """What a document says of each of its tables, if it has several."""
    tables = document.get(TABLES.name) if isinstance(document, dict) else None
    return list(tables.values()) if isinstance(tables, dict) else tables if isinstance(tables, list) else []

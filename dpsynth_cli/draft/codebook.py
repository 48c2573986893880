"""A public codebook of any kind: which kind it is, and what it says of the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpsynth_cli.draft import csvw, ddi, documents, expectations, frictionless, google_domain, plain_csv, sdv
from dpsynth_cli.draft.facts import Facts, wrong

KINDS = (expectations, csvw, frictionless, sdv, google_domain)  # of JSON or YAML, the most certain first
MOST_COLUMNS = 100_000


def read_codebook(path: str, table: str) -> list[Facts]:
    """What a codebook says of each column; `table` is the name of the table where it describes several."""
    ending = path.lower().rpartition(".")[2]
    if ending == "xml":
        facts = ddi.read(path)
    elif ending in ("csv", "tsv"):
        facts = plain_csv.read(path)
    elif ending in ("json", "yaml", "yml"):
        document: Any = documents.from_json(path) if ending == "json" else documents.from_yaml(path)
        kind = next((kind for kind in KINDS if kind.fits(document)), None)
        if kind is None:
            known = ", ".join(kind.KIND for kind in KINDS)
            raise wrong(
                path, f"it is none of {known}.", "`dpsynth init --help` lists what a codebook can be."
            )
        facts = kind.read(document, path, table)
    else:
        raise wrong(path, "its name does not end with .json, .yaml, .xml or .csv.", "Rename it.")
    if not facts:
        raise wrong(path, "it describes no column.", "Take another codebook.")
    if len(facts) > MOST_COLUMNS:
        raise wrong(path, f"it describes more than {MOST_COLUMNS:,} columns.", "Take a smaller one.")
    return facts


class Known:
    """What is known of columns by name: as it is written, else by letters alone, else by a pattern."""

    def __init__(self, facts: Sequence[Facts]) -> None:
        self.exact: dict[str, Facts] = {}
        folded: dict[str, list[Facts]] = {}
        for one in facts:
            if one.name in self.exact:
                raise wrong(one.at, f"the column is described twice, first at {self.exact[one.name].at}.")
            self.exact[one.name] = one
            folded.setdefault(_folded(one.name), []).append(one)
        self._patterns = [one for one in facts if one.pattern]
        self._folded = {name: only[0] for name, only in folded.items() if len(only) == 1}

    def of(self, name: str) -> Facts | None:
        known = self.exact.get(name) or self._folded.get(_folded(name))
        return known or next((one for one in self._patterns if _matches(name, one.name)), None)


def _matches(name: str, pattern: str) -> bool:
    start, _, end = pattern.partition("*")
    return len(name) >= len(start) + len(end) and name.startswith(start) and name.endswith(end)


def _folded(name: str) -> str:
    return name.strip().casefold()

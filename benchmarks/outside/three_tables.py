"""What a judge is given: rows that were released, rows that were held out, and a table to judge.

Runs in the judge's own environment, where there is pandas and nothing of dpsynth. Arguments: the three CSV files, the
JSON file of columns ({name: categorical, numerical or datetime}) and how many rows to look at.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import pandas as pd

warnings.filterwarnings("ignore")
MISSING = "(missing)"


class Given(NamedTuple):
    released: pd.DataFrame
    held_out: pd.DataFrame
    made: pd.DataFrame
    kinds: dict[str, str]
    most: int

    @property
    def numeric(self) -> list[str]:
        return [name for name, kind in self.kinds.items() if kind != "categorical"]

    @property
    def categorical(self) -> list[str]:
        return [name for name, kind in self.kinds.items() if kind == "categorical"]


def given() -> Given:
    """The tables of the command line, all with the same types."""
    *files, columns, most = sys.argv[1:]
    kinds = json.loads(Path(columns).read_text())
    frames = [read(file, kinds) for file in files]
    return Given(*frames, kinds, int(most))


def read(path: str, kinds: dict[str, str]) -> pd.DataFrame:
    """Labels as text, numbers as float64, times as seconds: judges differ in what else they take."""
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)[list(kinds)]
    for name, kind in kinds.items():
        if kind == "categorical":
            frame[name] = frame[name].astype(object).where(frame[name] != "", MISSING)
        elif kind == "datetime":
            stamps = pd.to_datetime(frame[name].replace("", None), errors="coerce")
            frame[name] = (stamps - pd.Timestamp(0)) / pd.Timedelta(seconds=1)
        else:
            frame[name] = pd.to_numeric(frame[name].replace("", None), errors="coerce").astype("float64")
    return frame


def filled(frame: pd.DataFrame, numeric: list[str]) -> pd.DataFrame:
    """Without holes, for judges that cannot have them: a missing number is the median, as in every table alike."""
    return frame.fillna({name: frame[name].median() for name in numeric})


def say(figures: dict[str, float]) -> None:
    """What was found, as the last line of standard output: judges print there, too."""
    print()
    print(json.dumps({key: float(value) for key, value in figures.items()}))

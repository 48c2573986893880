"""Make the sample tables: python sample_data/make.py

Made-up tables, always the same ones. Nobody in them exists.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

HERE = Path(__file__).parent
EDUCATION = ("primary", "secondary", "vocational", "bachelor", "master", "doctorate")
CITIES = (
    "Alder Bay",
    "Brightwater",
    "Coldfield",
    "Dunmore",
    "Eastmarch",
    "Fairhaven",
    "Gull Point",
    "Highmoor",
)
SEXES = ("female", "male")
MACHINES = ("lathe", "mill", "press", "saw")


def trips(rng: np.random.Generator, n: int = 12_000) -> pa.Table:
    """Taxi trips in a city of five quarters, by the hour of the day and the day of the week."""
    centres = np.array(
        [[-73.98, 40.755], [-74.005, 40.72], [-73.955, 40.78], [-73.79, 40.645], [-73.93, 40.69]]
    )
    spread = np.array([[0.012, 0.014], [0.008, 0.007], [0.009, 0.012], [0.006, 0.004], [0.035, 0.028]])
    by_day, by_night = [0.42, 0.16, 0.2, 0.1, 0.12], [0.25, 0.38, 0.08, 0.04, 0.25]

    day = rng.choice(366, n, p=_weekly(366))
    hours = np.array(
        [3, 2, 1.5, 1, 1, 1.5, 3, 6, 8, 7, 6, 6, 7, 6.5, 6.5, 7, 8, 9.5, 10, 9, 7.5, 6.5, 5.5, 4]
    )
    hour = rng.choice(24, n, p=hours / hours.sum())
    second = day * 86_400 + hour * 3_600 + rng.integers(0, 3_600, n)
    night = (hour >= 21) | (hour < 6)
    quarter = np.where(night, rng.choice(5, n, p=by_night), rng.choice(5, n, p=by_day))
    place = centres[quarter] + rng.normal(size=(n, 2)) * spread[quarter]

    rush = np.exp(-(((hour - 8.5) / 2) ** 2)) + np.exp(-(((hour - 17.5) / 2.5) ** 2))
    typical = np.where(quarter == 3, 38.0, 11.0) * (1 + 0.5 * rush)
    minutes = typical * rng.lognormal(0, 0.45, n)
    start = np.datetime64("2020-01-01T00:00:00", "s")
    return pa.table(
        {
            "lon": np.clip(place[:, 0], -74.3, -73.7).round(5),
            "lat": np.clip(place[:, 1], 40.5, 41.0).round(5),
            "pickup": pa.array(start + second.astype("timedelta64[s]"), pa.timestamp("s")),
            "minutes": np.clip(minutes, 1, 180).round(1),
        }
    )


def _weekly(days: int) -> np.ndarray:
    weights = np.resize([1.0, 1.05, 1.1, 1.25, 1.3, 0.95, 0.9], days)
    return weights / weights.sum()


def people(rng: np.random.Generator, n: int = 8_000) -> pa.Table:
    """A survey of adults: income follows education, age, hours and capital; some answers are missing."""
    age = np.clip(rng.gamma(7.5, 5.6, n), 17, 90).astype(int)
    female = rng.random(n) < 0.51
    ability = rng.normal(size=n)
    schooling = np.clip(
        (2.1 + 1.25 * ability + 0.4 * (age > 24) + rng.normal(0, 0.8, n)).round(), 0, 5
    ).astype(int)
    city = np.array([rng.choice(8, p=p) for p in _city_shares(schooling)])

    full_time = rng.random(n) < np.where(age < 65, 0.58, 0.12)
    hours = np.where(full_time, 40, np.clip(rng.normal(38 + 2 * schooling - 5 * female, 13), 1, 99)).astype(
        int
    )
    owns = rng.random(n) < 0.03 + 0.03 * schooling
    capital = np.where(owns, np.clip(rng.lognormal(8.2 + 0.15 * schooling, 1.0, n), 100, 99_999), 0).astype(
        int
    )
    smokes = rng.random(n) < 0.33 - 0.045 * schooling + 0.04 * ~female

    prime = -(((age - 48) / 17.0) ** 2)
    score = -2.35 + 0.95 * (schooling - 2) + 1.1 * prime + 0.055 * (hours - 40) + 1.4 * (capital > 5_000)
    high = rng.random(n) < 1 / (1 + np.exp(-(score - 0.5 * female + 1.3)))

    birthday = np.datetime64("2025-01-01") - (age * 365.25 + rng.uniform(0, 365.25, n)).astype(
        "timedelta64[D]"
    )
    lost = lambda share: rng.random(n) < share  # noqa: E731
    return pa.table(
        {
            "age": age,
            "sex": np.where(female, "female", "male"),
            "education": pa.array(np.array(EDUCATION)[schooling], mask=lost(0.02)),
            "city": pa.array(np.array(CITIES)[city], mask=lost(0.01)),
            "hours": pa.array(hours, mask=lost(0.03)),
            "capital": capital,
            "smoker": pa.array(smokes, mask=lost(0.05)),
            "birthday": pa.array(birthday),
            "income": np.where(high, ">50K", "<=50K"),
        }
    )


def _city_shares(schooling: np.ndarray) -> np.ndarray:
    base = np.array([0.3, 0.2, 0.14, 0.11, 0.09, 0.07, 0.05, 0.04])
    pull = np.array([0.35, 0.2, -0.2, -0.1, 0.0, 0.25, -0.3, -0.25])
    shares = base * np.exp(pull * (schooling[:, None] - 2))
    return shares / shares.sum(axis=1, keepdims=True)


def sensors(rng: np.random.Generator, n: int = 4_000) -> pa.Table:
    """24 sensors of four machines, driven by three hidden causes: load, wear and the weather."""
    machine = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    means = np.array([[0.0, 0.0, 0.0], [1.2, -0.6, 0.0], [-0.8, 1.4, 0.1], [0.4, 0.5, -0.1]])
    causes = means[machine] + rng.normal(size=(n, 3))
    loadings = rng.normal(0, 0.55, (3, 24)) + np.repeat(np.eye(3), 8, axis=1)
    signal = causes @ loadings + 0.35 * rng.normal(size=(n, 24))
    columns = {}
    for kind, middle, scale, upper in (
        ("temp", 55, 9, 120),
        ("pressure", 5, 0.7, 10),
        ("vibration", 8, 1.6, 20),
    ):
        for i in range(8):
            values = middle + scale * signal[:, len(columns)]
            columns[f"{kind}_{i + 1}"] = np.clip(values, 0, upper).round(2)
    labels = pa.DictionaryArray.from_arrays(pa.array(machine, pa.int8()), pa.array(MACHINES))
    return pa.table({**columns, "machine": labels})


def households(rng: np.random.Generator, n: int = 3_000) -> tuple[pa.Table, pa.Table]:
    """Households, and who lives in them: couples are of about one age, children a generation younger."""
    city, rooms = rng.choice(8, n, p=_city_shares(np.full(n, 2))[0]), np.zeros(n, int)
    head = np.clip(rng.gamma(9, 5.4, n), 18, 94).astype(int)
    members: list[tuple[int, str, int, str, bool]] = []
    for home in range(n):
        before, sex = len(members), rng.integers(2)
        works = rng.random() < (0.8 if head[home] < 65 else 0.1)
        members.append((home, "head", head[home], SEXES[sex], works))
        couple = rng.random() < 0.62 - 0.04 * city[home]
        if couple:
            age = int(np.clip(head[home] + rng.normal(-1.5, 3.5), 18, 99))
            spouse = 1 - sex if rng.random() < 0.97 else sex
            members.append((home, "spouse", age, SEXES[spouse], rng.random() < (0.7 if age < 65 else 0.08)))
        many = rng.poisson((1.5 if couple else 0.35) * (24 < head[home] < 62))
        for age in sorted((head[home] - 27 - rng.normal(3, 5, many)).astype(int), reverse=True):
            if 0 <= age < 30:
                members.append((home, "child", age, SEXES[rng.integers(2)], age > 17 and rng.random() < 0.5))
        if rng.random() < 0.06:
            members.append((home, "other", int(rng.integers(18, 90)), SEXES[rng.integers(2)], False))
        rooms[home] = np.clip(round(1.2 + 0.9 * (len(members) - before) + rng.normal(0, 0.9)), 1, 9)
    number = rng.permutation(n) + 1  # whose household is where in the file tells nothing
    order = rng.permutation(len(members))
    columns = list(zip(*members, strict=True))
    whose = np.array(columns[0])
    first = pa.table(
        {
            "household_id": number,
            "city": [CITIES[one] for one in city],
            "rooms": rooms,
            "rent": np.clip((320 + 165 * rooms - 18 * city) * rng.lognormal(0, 0.25, n), 50, 5000).astype(
                int
            ),
        }
    )
    second = pa.table(
        {
            "household_id": number[whose],
            "relation": columns[1],
            "age": columns[2],
            "sex": columns[3],
            "works": [bool(one) for one in columns[4]],
        }
    )
    return first.take(np.argsort(number)), second.take(order)


def write_plain_csv(table: pa.Table, path: Path) -> None:
    with path.open("wb") as file:
        file.write((",".join(table.column_names) + "\n").encode())
        csv.write_csv(table, file, csv.WriteOptions(include_header=False, quoting_style="none"))


def main() -> None:
    write_plain_csv(trips(np.random.default_rng(20200101)), HERE / "trips.csv")
    write_plain_csv(people(np.random.default_rng(20250101)), HERE / "people.csv")
    for table, name in zip(households(np.random.default_rng(7)), ("households", "members"), strict=True):
        write_plain_csv(table, HERE / f"{name}.csv")
    pq.write_table(sensors(np.random.default_rng(24)), HERE / "sensors.parquet", compression="zstd")


if __name__ == "__main__":
    main()

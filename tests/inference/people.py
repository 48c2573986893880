"""A small population whose numbers are known, and releases of it with seeded noise."""

from __future__ import annotations

import numpy as np

from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.inference.language import parse_query
from dpsynth_cli.inference.query import Published
from dpsynth_cli.inference.simulate import Drawn, Simulated, simulated
from dpsynth_cli.inference.statistics import Statistic
from dpsynth_cli.spec.spec import Spec, from_document

COLUMNS = {
    "sex": {"type": "nominal", "categories": ["f", "m"]},
    "level": {"type": "ordinal", "categories": ["low", "mid", "high"], "nullable": True},
    "age": {"type": "integer", "bounds": [20, 59]},
    "pay": {"type": "continuous", "bounds": [0, 100]},
}


def spec(
    mechanism: str = "marginals",
    epsilon: float = 1.0,
    delta: str | None = None,
    strata: str | None = None,
    params: dict[str, object] | None = None,
    **columns: object,
) -> Spec:
    document = {"dpsynth": 1, "name": "p", "input": "p.csv", "output": "q.csv"}
    privacy = {"epsilon": str(epsilon)} | ({"delta": delta} if delta else {})
    named = {"name": mechanism} | ({"strata": strata} if strata else {}) | (params or {})
    return from_document(document | {"privacy": privacy, "mechanism": named, "columns": columns or COLUMNS})


def people(rows: int = 3000, seed: int = 0) -> dict[str, np.ndarray]:
    """Codes: pay rises with age and is higher for m; one level in ten is missing."""
    rng = np.random.default_rng(seed)
    sex, age = rng.integers(2, size=rows), rng.integers(40, size=rows)
    level = np.where(rng.random(rows) < 0.1, 3, np.minimum(2, rng.integers(2, size=rows) + (age > 25)))
    pay = np.clip(20 + 0.8 * age + 8 * sex + rng.normal(0, 8, rows), 0, 99.9)
    return {"sex": sex, "level": level, "age": age, "pay": (pay / 100 * 2**30).astype(np.int64)}


def table(own: Spec, codes: dict[str, np.ndarray]) -> Drawn:
    rows = len(codes["sex"])
    return Drawn(Table({c.name: codes[c.name] for c in own.domain}, rows), own.domain, rows)


def released(own: Spec, codes: dict[str, np.ndarray], seed: int = 0) -> Simulated:
    return simulated(own, table(own, codes), np.random.default_rng(seed))


def published(own: Spec, codes: dict[str, np.ndarray], seed: int = 0) -> Published:
    made = released(own, codes, seed)
    return Published(own, made.outcome, made.known(), made.seed)


def statistic(text: str, own: Spec, where: str | None = None) -> Statistic:
    return Statistic(parse_query(text, where), own.domain, own.stated.relations)

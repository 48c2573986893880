"""What a shell offers after the Tab key: mechanisms, data sets, engines, metrics. No table is read."""

from __future__ import annotations

from collections.abc import Iterable

ENGINES = ("local", "dask")


def _beginning(words: Iterable[str], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


def mechanisms(incomplete: str) -> list[str]:
    from dpsynth_cli.mechanisms.registry import mechanisms as known

    return _beginning(known(), incomplete)


def engines(incomplete: str) -> list[str]:
    return _beginning(ENGINES, incomplete)


def datasets(incomplete: str) -> list[str]:
    """The data sets of the ledger that the environment names; none if there is no ledger."""
    from dpsynth_cli.errors import DpsynthError
    from dpsynth_cli.trusted.ledger.ledger import Ledger, ledger_path

    try:
        book = Ledger(ledger_path(None))
        return _beginning(book.datasets() if book.exists() else [], incomplete)
    except (DpsynthError, OSError):
        return []


def metrics(incomplete: str) -> list[str]:
    """Names of metrics; after a comma, the next one."""
    from dpsynth_cli.evaluate.metrics.names import NAMES

    before, comma, last = incomplete.rpartition(",")
    used = before.split(",")
    return [f"{before}{comma}{name}" for name in _beginning(("all", *NAMES), last) if name not in used]


def targets(incomplete: str) -> list[str]:
    from dpsynth_cli.evaluate.lines import TARGETS

    return [f"{name}=" for name in _beginning(TARGETS, incomplete)]

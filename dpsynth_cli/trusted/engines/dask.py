"""Many machines: parts of the table on the workers of a Dask cluster, merged here by addition.

Claim. Out go questions, declared columns and where a part lies; back come integer sums, the same as on one
machine: of the questions, and of cells that are not as declared. No noise is drawn on a worker. Partial sums
are raw data: they are in the memory of workers and on their connections, in no file, and a part whose worker
dies is read again from its start by another. Where units are protected, out goes the key of their marks
too: workers send each other encoded rows with marks in place of ids (`dask_shuffle.py`), and back come those
that are kept, which this machine sums.
Where labels are looked for, back come labels and how many rows of a part have each.
"""

from __future__ import annotations

import asyncio
import logging
import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from dpsynth_cli import __version__
from dpsynth_cli.domain import Domain
from dpsynth_cli.errors import DpsynthError, FileError, UsageError
from dpsynth_cli.questions import Ints, Question
from dpsynth_cli.trusted.core.shapes import tables_only
from dpsynth_cli.trusted.engines import Advance, Engine, marked_records, summed
from dpsynth_cli.trusted.rows.label_counts import Labelled, LabelShelves
from dpsynth_cli.trusted.rows.problems import Problems
from dpsynth_cli.trusted.rows.scan import Scan
from dpsynth_cli.trusted.rows.unit_rows import Marked, Records, Truncation
from dpsynth_cli.trusted.sums.tally import PartialSums, Tally

LARGEST_PART, SMALLEST_PART = 2**26, 2**20  # bytes of the file
SPILLING = ("target", "spill", "pause")
CONNECT = 20  # seconds


@contextmanager
def dask_engine(address: str | None = None, workers: int | None = None) -> Iterator[Engine]:
    """The cluster at an address, or one of processes on this machine that lives as long as the context."""
    try:
        import distributed
    except ImportError:
        raise UsageError(
            "--engine dask needs Dask, which is not installed.",
            next_step="Install it: pip install 'dpsynth-cli[dask]'",
        ) from None
    with _cluster(workers) if address is None else _connected(distributed, address) as client:
        yield Engine(partial(sum_over, client), _check, counts=True, gather=partial(gather, client))


def sum_over(
    client: Any,
    scan: Scan,
    omega: Domain,
    questions: Sequence[Question],
    progress: Advance = lambda done: None,
    watches: Sequence[object] = (),
    counted: Problems | None = None,
    part_size: int | None = None,
) -> tuple[list[Ints], int]:
    """The exact sums of the questions over all rows, and the number of rows. Nothing can be watched here."""
    # Bound before it is sent, so that Dask does not look for tasks of its own in the questions.
    asked = [tables_only(question) for question in questions]
    tally = Tally(questions, omega)
    work = partial(_summed, omega=omega, questions=asked)
    for sums in _mapped(client, scan, work, progress, counted, part_size):
        tally.merge(sums)
    return tally.sums(), tally.rows


def gather(
    client: Any,
    truncation: Truncation | LabelShelves,
    progress: Advance = lambda done: None,
    watches: Sequence[object] = (),
    counted: Problems | None = None,
    part_size: int | None = None,
) -> None:
    """All rows of a table to where their units are truncated, by workers; or labels to where they are
    counted, on this machine: workers read, encode, mark."""
    if isinstance(truncation, Truncation) and truncation.keeps:
        from dpsynth_cli.trusted.engines.dask_shuffle import shuffled

        shuffled(client, truncation, progress, counted, part_size or size_of_parts(client, truncation.marked))
        return
    for records in _mapped(client, truncation.marked, _marked, progress, counted, part_size):
        truncation.put(records)


def _mapped(
    client: Any,
    scan: Scan | Marked | Labelled,
    work: Callable[[Any, Problems | None], Any],
    progress: Advance,
    counted: Problems | None,
    part_size: int | None,
) -> Iterator[Any]:
    """What the workers make of each part of a table, once each, in any order."""
    from distributed import as_completed

    cores, size = cores_of(client), part_size or size_of_parts(client, scan)
    names = None if counted is None else tuple(counted.columns)
    task = partial(work_of, work=work, names=names)
    parts: Iterator[Any] = scan.parts(size)
    under_way: dict[str, int] = {}

    def submit(count: int) -> Iterator[Any]:
        for part in islice(parts, count):
            future = client.submit(task, part, pure=False)
            under_way[future.key] = part.size or 0
            yield future

    with losses_told():
        done = as_completed(submit(3 * cores), with_results=True)
        for future, found in done:
            read = under_way.pop(future.key)  # fails if a part comes a second time
            made, problems = unless_failed(found)
            yield made
            if counted is not None and problems is not None:
                counted.merge(problems)
            progress(read)
            future.release()
            for more in submit(1):
                done.add(more)


@contextmanager
def losses_told() -> Iterator[None]:
    """Workers that die and a cluster that goes away, in words."""
    from distributed import CancelledError, KilledWorker

    try:
        yield
    except KilledWorker:
        raise FileError(
            "several workers died one after the other while they read the same rows.",
            "",
            "Give each more memory.",
        ) from None
    except (OSError, asyncio.TimeoutError, CancelledError):
        raise FileError("the Dask cluster went away.", "", "Start it again.") from None


def unless_failed(found: Any) -> Any:
    """What a worker gave back, if it is not an error."""
    if isinstance(found, DpsynthError):
        raise found
    return found


def size_of_parts(client: Any, scan: Any) -> int:
    """So many bytes of the file that every core has a few parts, and none is too large for its memory."""
    whole = int(scan.size or 0)
    return min(LARGEST_PART, max(SMALLEST_PART, whole // (4 * cores_of(client))))


def cores_of(client: Any) -> int:
    return max(1, sum(map(int, client.nthreads().values())))


def _summed(
    part: Scan, counted: Problems | None, omega: Domain, questions: Sequence[Question]
) -> PartialSums:
    return summed(part, omega, questions, counted)


def _marked(part: Marked | Labelled, counted: Problems | None) -> Records:
    return np.concatenate([np.empty(0, part.kind), *marked_records(part, counted)])


def work_of(
    part: Any, work: Callable[[Any, Problems | None], Any], names: Sequence[str] | None
) -> tuple[Any, Problems | None] | DpsynthError:
    """What runs on a worker: sums or records, and what is not as declared in columns of these names. It never
    raises: Dask would log the error's text, which may quote a cell."""
    from distributed import get_worker

    try:
        if _spills(get_worker()):
            return _may_spill("a worker of the cluster")
        counted = None if names is None else Problems.of(names)
        return work(part, counted), counted
    except DpsynthError as error:
        return error
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}, line {where.lineno}"
        return DpsynthError(
            f"a worker failed: {type(error).__name__} in {place} (dpsynth {__version__}).",
            "",
            "If it has the memory and the same versions as this machine, please report it.",
        )


def _check(scan: Scan) -> None:
    if scan.whole:
        raise UsageError(
            f"--engine dask cannot cut {scan.whole} into parts for several machines.",
            next_step="Make it plain CSV or Parquet, or leave out --engine: one machine reads it as it is.",
        )


@contextmanager
def _cluster(workers: int | None) -> Iterator[Any]:
    """Processes on this machine: encrypted, with no pages to look at, and with no room on the disk."""
    import dask
    from distributed import Client, LocalCluster

    settings: dict[str, Any] = {f"distributed.worker.memory.{what}": False for what in SPILLING}
    settings |= {f"distributed.{who}.http.routes": [] for who in ("scheduler", "worker")}
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=workers or os.cpu_count(),
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            security=True,  # else any user of this machine could send it work in our name
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@contextmanager
def _connected(distributed: Any, address: str) -> Iterator[Any]:
    try:
        client = distributed.Client(address, timeout=CONNECT)
    except (OSError, asyncio.TimeoutError, ValueError):
        raise UsageError(
            f"there is no Dask scheduler at {address} that answers.",
            next_step="Check --engine-address, e.g. tcp://host:8786, and Dask's own TLS settings.",
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=CONNECT)
            found = client.run(_about)
        except asyncio.TimeoutError:
            raise UsageError(f"the Dask cluster at {address} has no workers.") from None
        except Exception:  # a worker that cannot import this module, in whatever words
            found = {}
        if {version for version, _ in found.values()} != {__version__}:
            raise UsageError(
                f"not all workers at {address} have dpsynth {__version__}.",
                next_step="Install the same version on every machine of the cluster.",
            )
        if any(spills for _, spills in found.values()):
            raise _may_spill(f"the cluster at {address}")
        yield client


def _about(dask_worker: Any) -> tuple[str, bool]:
    return __version__, _spills(dask_worker)


def _spills(worker: Any) -> bool:
    """Whether it may put results on its disk: else they are in a plain dictionary."""
    return type(worker.data) is not dict


def _may_spill(who: str) -> UsageError:
    settings = " ".join(f"DASK_DISTRIBUTED__WORKER__MEMORY__{what.upper()}=False" for what in SPILLING[:2])
    return UsageError(
        f"{who} may write results to its disk, and partial sums are raw data.",
        next_step=f"Start its workers with {settings}",
    )

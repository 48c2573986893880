"""What is a stream at all, and the state of one as its ledger knows it."""

from __future__ import annotations

import json
from typing import Any

from dpsynth_cli.errors import NOTHING_SPENT, BudgetError, UsageError
from dpsynth_cli.hashing import canonical
from dpsynth_cli.release.budget import accountant_of
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.trusted.ledger.ledger import Ledger
from dpsynth_cli.trusted.stream.state import Store, StreamState

# For the life of a stream.
FIXED = ("name", "rows_hint", "privacy", "mechanism", "columns", "derive", "rules", "csv")


def check(spec: Spec) -> None:
    """Refuse, before anything else, what is no stream."""
    if not spec.mechanism.stream:
        raise UsageError(
            f"{_at(spec, 'mechanism.name')}: {spec.mechanism.name} releases a whole table.",
            next_step="For a stream, set mechanism.name to online; for a table: dpsynth release SPEC",
        )
    if spec.params.algorithm == "sparse" and spec.privacy.delta is not None:
        raise UsageError(
            f"{_at(spec, 'privacy.delta')}: sparse counting has pure epsilon only: its checks against a "
            "threshold gain nothing from a delta.",
            next_step="Leave out privacy.delta, or set mechanism.algorithm to blocks.",
        )
    if spec.evaluation.epsilon is not None:
        raise UsageError(
            f"{_at(spec, 'evaluate.epsilon')}: a stream has no rows to go back to for a paid evaluation.",
            next_step="Leave out evaluate.epsilon.",
        )
    accountant_of(spec)


def check_deletions(spec: Spec) -> None:
    """Refuse to take rows away where counts can only grow, or where a row may be replaced: one that comes
    instead of one that goes would move two columns of C the same way, which is more than was paid for; and
    where units are protected, since a row that is taken away may be one that was never counted."""
    if spec.privacy.unit is not None:
        raise UsageError(
            f"{_at(spec, 'privacy.unit')}: with a unit it is not known which of its rows were counted, so "
            "none can be taken away.",
            "The batch was not counted, and nothing more was spent.",
            "Undo the last push, or start another stream without them.",
        )
    if spec.params.algorithm == "sparse" or spec.privacy.neighbours != "add_remove":
        key = "mechanism.algorithm" if spec.params.algorithm == "sparse" else "privacy.neighbours"
        raise UsageError(
            f"{_at(spec, key)}: rows can be taken away only under add_remove and not with sparse counting.",
            "The batch was not counted, and nothing more was spent.",
            "Start another stream for a table that rows leave.",
        )


def check_end(spec: Spec, state: StreamState, rows: int | None = None) -> None:
    """Refuse a push beyond the horizon: its releases would have no part of the budget. Where the clock counts
    events, once a batch is read and its `rows` are known."""
    end = spec.params.horizon
    public = spec.params.arrivals == "public"
    if end is None or (public and rows is None):
        return
    if (state.events + (rows or 0) if public else state.pushes + 1) <= end:
        return
    clock, now = ("events", state.events) if public else ("pushes", state.pushes)
    raise UsageError(
        f"{_at(spec, 'mechanism.horizon')}: the stream {spec.name} ends after {end} {clock}, and {now} are "
        "counted" + (f"; this batch has {rows} more." if public else "."),
        "The batch was not counted, and nothing more was spent.",
        "Publish what is there: dpsynth stream publish SPEC. For what comes, start a stream of another name, "
        "with a budget of its own and a longer horizon, or infinite.",
    )


def _at(spec: Spec, key: str) -> str:
    """Where the spec says it."""
    return spec.places.get(key, key)


def fixed(spec: Spec) -> dict[str, Any]:
    """What may not change while a stream goes on; the output, rows and seed of a snapshot may."""
    document = json.loads(canonical({key: spec.effective[key] for key in FIXED}))
    return dict(document)


def loaded(spec: Spec, store: Store) -> StreamState:
    state = store.load() if store.uncommitted() is None else None
    if state is None:
        raise UsageError(
            f"there is no stream {spec.name} in {store.path.parent}.",
            NOTHING_SPENT,
            "Start it with: dpsynth stream init SPEC. Or name its ledger: --ledger FILE, or $DPSYNTH_LEDGER.",
        )
    changed = [key for key in FIXED if state.spec.get(key) != fixed(spec)[key]]
    if changed:
        raise UsageError(
            f"the stream {spec.name} was started with another {' and '.join(changed)}.",
            "Nothing was read and nothing more was spent.",
            "Undo the change, or start a stream of another name, with a budget of its own.",
        )
    check_alive(spec, store.ledger, state)
    return state


def check_alive(spec: Spec, ledger: Ledger, state: StreamState) -> None:
    """Refuse a stream that was aborted: its charge may have been given back, and spent on something else."""
    if ledger.state(state.stream_id) == "aborted":
        raise BudgetError(
            f"the stream {spec.name} was aborted in the ledger {ledger.path}: nothing pays for it any more.",
            "Nothing was read, published or spent.",
            "Start a stream of another name, with a budget of its own. See what was recorded: "
            "dpsynth budget log",
        )

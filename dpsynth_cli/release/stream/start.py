"""The start of a stream: its whole budget is charged, once, for as long as it goes on."""

from __future__ import annotations

import secrets
from typing import Any

from dpsynth_cli.errors import BudgetError
from dpsynth_cli.release.budget import cost_of
from dpsynth_cli.release.stream.place import check, check_alive, fixed, loaded
from dpsynth_cli.release.stream.published import check_whole
from dpsynth_cli.release.stream.status import Status, status_of
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.trusted.ledger.ledger import Ledger
from dpsynth_cli.trusted.stream.state import Store, StreamState
from dpsynth_cli.trusted.stream.unit_quota import no_units_yet


def init(spec: Spec, ledger: Ledger, start_over: bool = False) -> tuple[Status, bool]:
    """Charge the stream once, for its whole life; whether it was charged now.

    The state, with the stream's id, is on the disk before the charge: so a second `init` after a crash goes
    on with the same stream, and never charges twice. A stream that the ledger knows and whose state is gone
    is not charged again, unless it is given up in so many words (`start_over`).
    """
    check(spec)
    store = Store.of(spec.name, ledger)
    ledger.create()
    with store.locked():
        if start_over:
            check_whole(spec)
            _give_up(spec, ledger, store)
        elif store.exists and store.uncommitted() is None:
            return status_of(spec, store, loaded(spec, store)), False
        state = store.uncommitted()
        if state is not None and state.spec == fixed(spec):
            check_alive(spec, ledger, state)
        if state is None or state.spec != fixed(spec):
            if state is not None and ledger.state(state.stream_id) == "reserved":
                ledger.abort(state.stream_id, "started with another spec")
            _refuse_lost(spec, ledger, store)
            state = StreamState(
                secrets.token_hex(16),
                secrets.token_hex(32),
                fixed(spec),
                secrets.randbits(63) if spec.seed is None else spec.seed,
                units={} if spec.privacy.unit is None else no_units_yet(),
            )
            store.begin(state)
        try:
            state.ledger = _charge(spec, ledger, state)
        except BudgetError:
            store.discard()
            raise
        store.commit(state)
        return status_of(spec, store, state), True


def _refuse_lost(spec: Spec, ledger: Ledger, store: Store) -> None:
    """Refuse to charge a stream a second time because its state is gone."""
    known = ledger.streams(spec.privacy.dataset, spec.name)
    if not known:
        return
    charge, last = known[-1]
    gone = f" and has gone on to generation {last.payload['generation']}" if last else ""
    raise BudgetError(
        f"the stream {spec.name} of {spec.privacy.dataset} was charged on {charge.time[:10]}{gone}, and its "
        f"state is not at {store.path}.",
        "Nothing was charged.",
        "Put its newest state back there, from a backup or from the machine it was started on (a copy of "
        "before is refused). If it is lost for good, a new stream is charged anew: "
        "dpsynth stream init SPEC --start-over",
    )


def _give_up(spec: Spec, ledger: Ledger, store: Store) -> None:
    """End every stream of this name, and the one whose state is here, whatever data set that charges: nothing
    may go on with it. A charge is given back if no row was read."""
    here = store.stream_id()
    known = [
        charge.release
        for charge, _ in ledger.streams(name=spec.name)
        if charge.dataset == spec.privacy.dataset or charge.release == here
    ]
    refunds = [one for one in known if ledger.state(one) == "reserved"]
    ledger.quote(spec.privacy.dataset, cost_of(spec), without=refunds)
    for release_id in known:
        ledger.abort(release_id, "started over")
    store.discard()


def _charge(spec: Spec, ledger: Ledger, state: StreamState) -> dict[str, Any]:
    """Reserve the whole budget, unless a cut-off `init` has; what audits say about it."""
    privacy = spec.privacy
    if ledger.state(state.stream_id) is not None:
        said = ledger.find(state.stream_id)[0].payload
        charged, conversion = said.get("charged", said["amount"]), said.get("conversion")
    else:
        reservation = ledger.reserve(privacy.dataset, state.stream_id, spec.name, cost_of(spec), stream=True)
        charged, conversion = reservation.charged, reservation.conversion
    return {"dataset": privacy.dataset, "charged": str(charged), "conversion": conversion}

"""Budgets per data set across releases: charge before looking, and never forget a charge.

Claim: `reserve` is durable before it returns; with any number of processes, each killed at any moment,
the charges of a data set never add up to more than its grant, exactly, and only `abort` before
`drawn` gives a charge back. A release goes reserve -> drawn -> commit; a crash leaves it charged.

Entries hold public words only: no path of an input, nothing computed from rows, no hash of either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from dataclasses import replace as replaced
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpsynth_cli.errors import NOTHING_SPENT, DpsynthError, VerificationError
from dpsynth_cli.trusted.ledger import chain, copies, refusals
from dpsynth_cli.trusted.ledger.balance import BEFORE, STATES, Balance
from dpsynth_cli.trusted.ledger.books import (
    account,
    books,
    is_stream,
    last_note,
    of_release,
    open_charges,
    policies,
)
from dpsynth_cli.trusted.ledger.chain import Db, Entry
from dpsynth_cli.trusted.ledger.grants import Cost, grant_of
from dpsynth_cli.trusted.ledger.places import ledger_path
from dpsynth_cli.trusted.ledger.policy import EVERYBODY, RULES, Policy, who
from dpsynth_cli.trusted.ledger.reading import Reading
from dpsynth_cli.trusted.ledger.replay import wrong_sums

__all__ = ["Ledger", "Reservation", "ledger_path"]

STAYS_CHARGED = "What this release was charged stays charged."


@dataclass(frozen=True)
class Reservation:
    """A charge that is on disk; `charged` and `remaining` are in the unit of the grant, if there is one."""

    number: int
    hash: str
    charged: Fraction | None
    remaining: Fraction | None
    conversion: str | None


class Ledger(Reading):
    """The ledger in one place, written to."""

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *exception: object) -> None:
        """Nothing to close: each call is one transaction on its own connection."""

    # --- a release -----------------------------------------------------------------------------------

    def reserve(
        self, dataset: str, release_id: str, name: str, cost: Cost, stream: bool = False
    ) -> Reservation:
        """Charge a release before any row is read; BudgetError, and no entry, if grants or rules are against
        it."""
        chain.check_name("data set", dataset)
        chain.check_name("release's id", release_id)
        payload: dict[str, Any] = {"name": name, **cost.as_json()}
        payload |= ({"stream": True} if stream else {}) | ({"by": by} if (by := who()) else {})
        with self._writing(NOTHING_SPENT, create=True) as db:
            self._check_move(db, "reserve", release_id, NOTHING_SPENT)
            if stream and any((one.dataset, one.payload["name"]) == (dataset, name) for one in _streams(db)):
                raise refusals.second_stream(dataset, name)
            found = books(db, dataset)
            charged, conversion = found.price(cost, by)
            if found.limit is not None:
                payload |= {"charged": str(charged), "conversion": conversion}
            entry = chain.append(db, dataset, "reserve", release_id, payload)
            found.add(entry)
        return Reservation(entry.number, entry.hash, charged, found.remaining, conversion)

    def drawn(self, release_id: str) -> Entry:
        """Mark, before the first row is read, that rows are read: from here there is no refund."""
        return self._move("drawn", release_id, {}, f"No row was read. {STAYS_CHARGED}")

    def commit(self, release_id: str, payload: dict[str, Any]) -> Entry:
        """Record what was published (SHA-256 of output, transcript, public audit): published things only."""
        return self._move("commit", release_id, payload, STAYS_CHARGED)

    def abort(self, release_id: str, why: str) -> bool:
        """End a release; whether its charge was given back: only if no row was read.

        `why` goes into the record: words of ours, never the text of a foreign exception.
        """
        return self._abort("abort", release_id, why)

    def refund(self, release_id: str, why: str) -> None:
        """End a release that has read no row, and no other: what is under way goes on."""
        self._abort("refund", release_id, why)

    def _abort(self, kind: str, release_id: str, why: str) -> bool:
        with self._writing(STAYS_CHARGED) as db:
            history = self._check_move(db, kind, release_id, STAYS_CHARGED)
            refunded = history[-1].kind == "reserve"
            chain.append(db, history[0].dataset, "abort", release_id, {"why": why, "refunded": refunded})
        return refunded

    def _move(self, kind: str, release_id: str, payload: dict[str, Any], cost: str) -> Entry:
        with self._writing(cost) as db:
            history = self._check_move(db, kind, release_id, cost)
            return chain.append(db, history[0].dataset, kind, release_id, payload)

    def _check_move(self, db: Db, kind: str, release_id: str, cost: str) -> list[Entry]:
        """The release's entries so far, if the next one may be of this kind.

        No step can be taken twice: of two processes that resume one release, one is refused.
        """
        history = of_release(db, release_id)
        state = STATES[history[-1].kind] if history else None
        if state not in BEFORE[kind]:
            where = f"is {state} in the ledger {self.path}" if state else f"is not in the ledger {self.path}"
            raise VerificationError(
                f"release {release_id} {where}, so it cannot be marked {STATES.get(kind, 'given back')}.",
                cost,
                "See what was recorded: dpsynth budget log",
            )
        return history

    def note(
        self, dataset: str, release_id: str, payload: dict[str, Any], follows: int | None = None
    ) -> Entry:
        """Record something else of a release, such as the commitment to a stream's state.

        With `follows`, the number of the release's last note (0: none yet), it is refused if somebody
        has written another one since: a restored old state cannot go on.
        """
        chain.check_name("data set", dataset)
        chain.check_name("release's id", release_id)
        with self._writing(STAYS_CHARGED, create=True) as db:
            last = last_note(db, release_id)
            number = last.number if last else 0
            if follows is not None and follows != number:
                raise VerificationError(
                    f"release {release_id} has gone on since entry {follows}: its last note in the ledger "
                    f"is entry {number}.",
                    STAYS_CHARGED,
                    "Use its newest state, never a copy from before.",
                )
            return chain.append(db, dataset, "note", release_id, payload)

    # --- budgets -------------------------------------------------------------------------------------

    def create(self) -> bool:
        """Make the ledger if there is none; whether it was made now."""
        new = not self.place.exists()
        with self._writing(NOTHING_SPENT, create=True):
            return new

    def grant(
        self,
        dataset: str,
        epsilon: str,
        neighbours: str,
        delta: str | None = None,
        allow_unbounded: bool = False,
        replace: bool = False,
        unit: str = "",
    ) -> Balance:
        """Limit a data set, or all that match a pattern together, to a total, or add to it; what was recorded
        before counts against it. With `replace`, and after it was revoked, the total is this one.

        With a delta it is counted in rho: as much as the epsilons of all grants together allow at it.
        """
        payload = {
            "epsilon": epsilon,
            "delta": delta,
            "currency": "epsilon" if delta is None else "rho",
            "neighbours": neighbours,
            "allow_unbounded": allow_unbounded,
            **({"replace": True} if replace else {}),
            **({"unit": unit} if unit else {}),
        }
        chain.check_name("data set", dataset)
        new = grant_of(payload)
        cost = "Nothing was granted."
        with self._writing(cost, create=True) as db:
            found = account(db, dataset)
            refusals.check_grant(found, new, cost, replace)
            found.add(chain.append(db, dataset, "grant", "", payload))
        return found.balance()

    def revoke(self, dataset: str) -> Balance:
        """Take back what is left of a grant: no more releases until there is a new one."""
        return self._stop("revoke", dataset)

    def close(self, dataset: str) -> Balance:
        """No more releases, for ever."""
        return self._stop("close", dataset)

    def _stop(self, kind: str, dataset: str) -> Balance:
        cost = "Nothing was changed."
        chain.check_name("data set", dataset)
        with self._writing(cost, create=kind == "close") as db:
            found = account(db, dataset)
            refusals.check_stop(found, kind, cost)
            found.add(chain.append(db, dataset, kind, "", {}))
        return found.balance()

    def set_policy(self, policy: Policy, person: str = EVERYBODY, only: Sequence[str] = RULES) -> None:
        """The ledger's own rules from now on, for everybody or for one person; of its rules `only` these, the
        others stay as they are."""
        with self._writing("Nothing was changed.", create=True) as db:
            old = policies(db).get(person, Policy())
            new = replaced(old, **{rule: getattr(policy, rule) for rule in only})
            chain.append(db, "", "policy", "", {"person": person} | new.as_json())

    # --- copies --------------------------------------------------------------------------------------

    def take(self, path: Path) -> int:
        """Take over the entries of such a file, behind those that are the same; how many were new."""
        incoming = copies.read(path)
        cost = "Nothing was taken over."
        broken = chain.problems(incoming) or wrong_sums([e for row in incoming if (e := chain.entry_of(row))])
        if broken:
            raise VerificationError(f"{path} is not a whole ledger: {broken[0]}.", cost)
        with self._writing(cost, create=True) as db:
            here = chain.rows(db)
            if here != incoming[: len(here)]:
                raise VerificationError(
                    f"the ledger {self.path} has entries that {path} does not have.",
                    cost,
                    "Two ledgers cannot be made one: take it over into an empty one.",
                )
            for row in incoming[len(here) :]:
                chain.insert(db, row)
        return len(incoming) - len(here)

    # --- transactions --------------------------------------------------------------------------------

    @contextmanager
    def _writing(self, cost: str, create: bool = False) -> Iterator[Db]:
        """One write; the copy for auditors, if there is one, must be in order before and has it after."""
        if self.mirror is not None:
            self._mirrored(cost)
        with self.place.transaction(write=True, create=create, timeout=self.timeout, cost=cost) as db:
            yield db
        if self.mirror is not None:
            with suppress(DpsynthError):  # the entry is durable; the next write says so, and catches up
                self._mirrored(cost)

    def _mirrored(self, cost: str) -> None:
        assert self.mirror is not None
        try:
            self.export(self.mirror)
        except chain.NoLedger:
            return
        except DpsynthError as error:
            raise type(error)(error.happened, cost, error.next_step) from None


def _streams(db: Db) -> Iterator[Entry]:
    """The charges of streams that go on."""
    return (one for one in open_charges(db) if is_stream(one, last_note(db, one.release)))

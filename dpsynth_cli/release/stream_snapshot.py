"""A snapshot of a stream from its noisy counts alone: for publishing, and for verifying without the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpsynth_cli.errors import VerificationError
from dpsynth_cli.mechanisms.online import online, schedule
from dpsynth_cli.mechanisms.search.find import Found
from dpsynth_cli.questions import Answer, Model, Question, Total, as_json
from dpsynth_cli.release.budget import accountant_of
from dpsynth_cli.release.synthesis import Outcome, check_paid_for
from dpsynth_cli.release.transcript import Transcript
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.trusted.core.accountant import laplace_sd
from dpsynth_cli.trusted.core.bill import Bill, recorded_ask
from dpsynth_cli.trusted.core.prices import Charge, charge_for

SPARSE = "sparse_counting"  # the noise of its answers, by name
Parts = list[tuple[int, int, list[tuple[Any, Answer]]]]  # first and last release, questions and answers


def rebuilt(spec: Spec, transcript: Transcript) -> Outcome:
    """The snapshot's model, and what an event of its release pays over the life of the stream."""
    stream = transcript.header["stream"]
    release = stream["release"]
    model, bill = model_of(spec, release, stream["clock"], _parts(transcript))
    model = spec.keeper.model(model)
    accountant = accountant_of(spec)
    accountant.charge([charge.price for charge in bill])
    clock = "events" if spec.params.arrivals == "public" else "pushes"
    facts = {"stream": stream["id"], "release": release, clock: stream["clock"]}
    found = Found(spec.domain, Fraction(0))
    return Outcome(replace(model, facts=facts | model.facts), accountant, bill, found)


def _parts(transcript: Transcript) -> Parts:
    left, parts = list(transcript.answers), []
    for first, last, count in transcript.header["stream"]["blocks"]:
        parts.append((first, last, left[:count]))
        left = left[count:]
    if left:
        raise VerificationError("the transcript has answers that belong to no block.", "")
    return parts


def asked_by_block(spec: Spec, transcript: Transcript) -> list[list[tuple[Question, Answer]]]:
    """For each block of a snapshot what was asked about its events, and the answers."""
    found = []
    for _, last, answers in _parts(transcript):
        bill = Bill(spec.domain, accountant_of(spec), answers)
        share = schedule.share(last)
        online.ask_block(recorded_ask(bill), spec.domain, spec.params, spec.split, share)
        own = [answer for _, answer in answers]
        found.append([(charge.question, answer) for charge, answer in zip(bill.charges, own, strict=True)])
    return found


def model_of(spec: Spec, release: int, clock: int, parts: Parts) -> tuple[Model, list[Charge]]:
    """What the answers about the parts of a release say, and what an event of it pays."""
    if spec.params.algorithm == "blocks":
        return _blocks_model(spec, release, parts)
    return _sparse_model(spec, release, clock, parts)


def _blocks_model(spec: Spec, release: int, parts: Parts) -> tuple[Model, list[Charge]]:
    due = [(block.first, block.last) for block in schedule.covering(release)]
    if [part[:2] for part in parts] != due:
        raise VerificationError("the transcript has other blocks than its release is made of.", "")
    counted, bills = [], dict[int, list[Charge]]()
    for first, last, answers in parts:
        bill = Bill(spec.domain, accountant_of(spec), answers)
        share = schedule.share(last)
        counted.append(online.ask_block(recorded_ask(bill), spec.domain, spec.params, spec.split, share))
        check_paid_for(bill.charges, answers)
        if schedule.epoch(last) == schedule.epoch(release):
            bills[last - first + 1] = bill.charges
    # An event of this release is, or will be, in one block of each size; where none of a size has ended, the
    # newest block stands for it: its share is the same.
    sizes = schedule.sizes(schedule.epoch(release))
    lines = []
    for size in sizes:
        for charge in bills.get(size, bill.charges):
            step = f"{charge.question.step}, blocks of {size}"
            lines.append(replace(charge, question=replace(charge.question, step=step)))
    return online.snapshot(counted, spec.domain), lines


def _sparse_model(spec: Spec, release: int, clock: int, parts: Parts) -> tuple[Model, list[Charge]]:
    params, omega = spec.params, spec.domain
    (first, last, answers), *others = parts
    r = time_level(spec, clock)
    bill = sparse_bill(spec, online.sparse_questions(r, omega, params))
    total, counts = None, answers
    if params.arrivals == "public":
        (question, n), *counts = answers
        total = int(n.values[0])
        if (question, total) != (as_json(Question("n", Total(), Fraction(0))), clock):
            raise VerificationError("the transcript has another number of events than it says.", "")
    told = [(question, answer.lengths, answer.noise, answer.sd) for question, answer in counts]
    due = [(charge.asked, charge.lengths, SPARSE, charge.price.sd) for charge in bill]
    if others or (first, last) != (1, release) or told != due:
        raise VerificationError("the transcript has other answers than sparse counting gives.", "")
    levels = {(len(answer.values) - 1).bit_length(): answer.values for _, answer in counts}
    if len(omega.modelled) == 1:  # the deeper levels are paid for when they come
        deep = online.sparse_depth(omega.modelled)
        bill = sparse_bill(spec, online.sparse_questions(deep, omega, params))
    return online.sparse_snapshot(levels, total, omega), bill


def time_level(spec: Spec, clock: int) -> int:
    """The time level by events, or by pushes times the public guess of their rows."""
    events = clock if spec.params.arrivals == "public" else clock * (spec.domain.rows_hint or 1)
    return schedule.time_level(events, spec.privacy.budget)


def sparse_bill(spec: Spec, questions: Sequence[Question]) -> list[Charge]:
    """The price of each level's counts; its noise is that of a finished time level, Lap(2/epsilon_jr)."""
    bill = []
    for question in questions:
        charge = charge_for(question, spec.domain, accountant_of(spec))
        scale = 2 * charge.price.parameter
        bill.append(replace(charge, price=replace(charge.price, parameter=scale, sd=laplace_sd(scale))))
    return bill

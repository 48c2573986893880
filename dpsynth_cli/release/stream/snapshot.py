"""A snapshot of a stream from its noisy counts alone: for publishing, and for verifying without the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from dpsynth_cli.errors import VerificationError
from dpsynth_cli.mechanisms.online import online, schedule
from dpsynth_cli.mechanisms.search.find import Found
from dpsynth_cli.question_json import as_json
from dpsynth_cli.questions import Answer, Asking, Misfit, Model, Question, Total
from dpsynth_cli.release.budget import accountant_of
from dpsynth_cli.release.record.transcript import Transcript
from dpsynth_cli.release.synthesis import Outcome
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.trusted.core.accountant import laplace_sd
from dpsynth_cli.trusted.core.bill import recorded_ask
from dpsynth_cli.trusted.core.prices import Charge, charge_for
from dpsynth_cli.trusted.core.sensitivity import is_free
from dpsynth_cli.trusted.stream.release_prices import NOISE, release_bill, sd_of
from dpsynth_cli.trusted.stream.state import StreamState
from dpsynth_cli.trusted.stream.table_prices import length_of, table_sd, tables_bill

SPARSE = "sparse_counting"  # the noise of its answers, by name
Answers = Sequence[tuple[Any, Answer]]  # questions as JSON, and their answers


def rebuilt(spec: Spec, transcript: Transcript) -> Outcome:
    """The snapshot's model, and what an event of its release pays over the life of the stream."""
    stream = transcript.header["stream"]
    release = stream["release"]
    model, bill = model_of(spec, stream, transcript.answers)
    model = spec.keeper.model(model)
    accountant = accountant_of(spec)
    accountant.charge([charge.price for charge in bill])
    clock = "events" if spec.params.arrivals == "public" else "pushes"
    facts = {"stream": stream["id"], "release": release, clock: stream["clock"]}
    facts |= {name: value for name, value in stream.items() if name.startswith("since_")}
    found = Found(spec.domain, Fraction(0))
    return Outcome(replace(model, facts=facts | model.facts), accountant, bill, found)


def measured(spec: Spec, transcript: Transcript, outcome: Outcome) -> list[tuple[Question, Answer]]:
    """The counts of a snapshot and their questions: of a window, where it is of one. Of several epochs only
    the columns, which all of them count in the same cells; their errors are independent."""
    answers = [answer for _, answer in transcript.answers]
    questions = [one.question for one in outcome.charges]
    epochs = transcript.header["stream"].get("epochs")
    if epochs is None:
        return list(zip(questions, answers[-len(questions) :], strict=True))
    ends = np.cumsum([choice + counted for choice, counted in epochs])
    each = [answers[end - counted : end] for end, (_, counted) in zip(ends, epochs, strict=True)]
    questions = [question for question in questions if not isinstance(question.statistic, Misfit)]
    if len(each) == 1:
        return list(zip(questions, each[0], strict=True))
    first = len(online.epoch_plan(spec.domain, spec.split).first)
    same = zip(*(counts[:first] for counts in each), strict=True)
    return list(zip(questions[:first], map(_added, same), strict=True))


def _added(answers: Sequence[Answer]) -> Answer:
    """The same counts of several epochs."""
    values = np.sum([answer.values for answer in answers], axis=0)
    return replace(answers[0], values=values, sd=sum(answer.sd**2 for answer in answers) ** 0.5)


def header_of(state: StreamState) -> dict[str, Any]:
    """What a transcript says of its stream."""
    release = state.release
    return {
        "id": state.stream_id,
        "release": release["number"],
        "clock": release["clock"],
        "at_least": release.get("at_least", 0),
        "before": release.get("before", 0),
        "seen": release.get("seen"),
    } | ({"epochs": release["epochs"]} if "epochs" in release else {})


def model_of(spec: Spec, stream: Mapping[str, Any], answers: Answers) -> tuple[Model, list[Charge]]:
    """What the answers of a release say, and what an event of it pays. `stream` is what the header says of
    it."""
    if spec.params.algorithm == "blocks":
        return _counted_model(spec, stream, answers)
    if spec.params.algorithm == "joint":
        return _joint_model(spec, stream, answers)
    return _sparse_model(spec, stream["clock"], answers)


def _counted_model(spec: Spec, stream: Mapping[str, Any], answers: Answers) -> tuple[Model, list[Charge]]:
    answers, window = list(answers), []
    if "since_release" in stream:
        half = len(answers) // 2
        answers, window = answers[:half], answers[half:]
    most = schedule.most_releases(spec.params.horizon, spec.params.releases_per_doubling)
    if most is not None and stream["release"] > most:
        raise VerificationError(f"the transcript is of release {stream['release']}, of at most {most}.", "")
    bill = release_bill(spec.domain, accountant_of(spec), stream["release"], answers, most)
    recorded = recorded_ask(bill)
    ask = Asking(recorded.answer, partial(sd_of, bill))
    counted = online.ask_release(
        ask, spec.domain, spec.params, spec.split, stream["at_least"], stream["before"]
    )
    if len(bill.charges) != len(answers):
        raise VerificationError("the transcript has answers that the mechanism never asked for.", "")
    for charge, (_, answer) in zip(bill.charges, answers, strict=True):
        free = is_free(charge.question, spec.domain)
        named = answer.noise == ("none" if free else NOISE[bill.accountant.currency])
        if not named or answer.sd < (1 - 1e-9) * sd_of(bill, charge.question):
            raise VerificationError("the transcript claims other noise than its shares pay for.", "")
    if window:
        if [question for question, _ in window] != [question for question, _ in answers]:
            raise VerificationError("the transcript's window has other answers than its release.", "")
        counted = online.counted_of([answer for _, answer in window])
    seen = None if window else stream.get("seen")
    depths = None if seen is None else {int(level): float(events) for level, events in seen.items()}
    return online.snapshot(counted, spec.domain, depths), bill.charges


def _joint_model(spec: Spec, stream: Mapping[str, Any], answers: Answers) -> tuple[Model, list[Charge]]:
    """The models of all epochs together, and what an event of the last one pays."""
    from dpsynth_cli.mechanisms.online import tables

    plan, models, bill = online.epoch_plan(spec.domain, spec.split), [], None
    first, left = len(plan.first), list(answers)
    if sum(map(sum, stream["epochs"])) != len(left):
        raise VerificationError("the transcript has answers that the mechanism never asked for.", "")
    for number, (choice, counted) in enumerate(stream["epochs"]):
        told, now, left = left[:choice], left[choice : choice + counted], left[choice + counted :]
        bill = tables_bill(spec.domain, accountant_of(spec), length_of(number), told or now)
        ask = Asking(recorded_ask(bill).answer, partial(table_sd, bill))
        columns, chosen = ask(plan.first), None
        if told:
            chosen = tables.choose(ask, plan, columns)
        running = [one for one in bill.charges if not isinstance(one.question.statistic, Misfit)]
        if len(bill.charges) != len(told or now) or [one.asked for one in running] != [q for q, _ in now]:
            raise VerificationError("the transcript has other answers than its choice of tables.", "")
        for charge, (_, answer) in zip(running, now, strict=True):
            named = answer.noise == NOISE[bill.accountant.currency]
            if not named or answer.sd < (1 - 1e-9) * table_sd(bill, charge.question):
                raise VerificationError("the transcript claims other noise than its shares pay for.", "")
        counts = [answer for _, answer in now]
        models.append(tables.snapshot(plan, chosen, counts[:first], counts[first:]))
    assert bill is not None
    return tables.joined(models), bill.charges


def _sparse_model(spec: Spec, clock: int, answers: Answers) -> tuple[Model, list[Charge]]:
    params, omega = spec.params, spec.domain
    r = time_level(spec, clock)
    bill = sparse_bill(spec, online.sparse_questions(r, omega, params))
    total, counts = None, list(answers)
    if params.arrivals == "public":
        (question, n), *counts = answers
        total = int(n.values[0])
        if (question, total) != (as_json(Question("n", Total(), Fraction(0))), clock):
            raise VerificationError("the transcript has another number of events than it says.", "")
    told = [(question, answer.lengths, answer.noise, answer.sd) for question, answer in counts]
    due = [(charge.asked, charge.lengths, SPARSE, charge.price.sd) for charge in bill]
    if told != due:
        raise VerificationError("the transcript has other answers than sparse counting gives.", "")
    levels = {(len(answer.values) - 1).bit_length(): answer.values for _, answer in counts}
    if len(omega.modelled) == 1:  # the deeper levels are paid for when they come
        deep = online.sparse_depth(omega.modelled)
        bill = sparse_bill(spec, online.sparse_questions(deep, omega, params))
    return online.sparse_snapshot(levels, total, omega, params, spec.privacy.budget), bill


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

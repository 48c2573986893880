"""dp-recorder (Re:cord-play) on our releases: records a run on one table and replays it on its neighbour.

Every answer of the curator goes through one function that dp-recorder watches: exact integers in, noisy
ones out, with the declared sensitivity in the norm that the noise is for. On the second table it gives the
answers of the first again, and checks that the same questions come with the same noise, that everything
that is published is equal, and that sums are no further apart than was declared. Then it draws each noise
again and fits its own bound on epsilon. Prints a line of JSON for each mechanism, relation and currency.
With `broken` as argument, the price forgets that a replaced row moves two cells: dp-recorder must say so.
"""

import json
import sys
from dataclasses import replace
from fractions import Fraction
from importlib.metadata import version

import numpy as np
from dp_recorder.auditing.audit_primitives import Auditor, audit_spec, ensure_equality

from dpsynth_cli.evidence import runs
from dpsynth_cli.evidence.neighbours import pairs
from dpsynth_cli.mechanisms.registry import mechanisms
from dpsynth_cli.questions import Answer, Asking
from dpsynth_cli.trusted.core import prices
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.curator import noise_for
from dpsynth_cli.trusted.noise.words import system_source

DELTA = Fraction(1, 10**5)


def watched(kind, metric):
    def noisy(values, sensitivity, charge, omega):
        return values + noise_for(charge, omega, system_source())

    spec = audit_spec(kind=kind, input_arg="values", sensitivity_arg="sensitivity", metric_fn=metric)
    return spec(noisy)


def blocks_apart(a, b):
    """The norm of the cube, where an answer has one block."""
    return float(np.abs(a - b).max())


NOISY = {
    "discrete_laplace": watched("discrete_laplace", lambda a, b: float(np.abs(a - b).sum())),
    "discrete_cube": watched("discrete_cube", blocks_apart),
    "rounded_gaussian": watched("rounded_gaussian", lambda a, b: float(((a - b) ** 2).sum() ** 0.5)),
    "none": watched("none", lambda a, b: float(np.abs(a - b).sum())),
}


def declared(charge):
    moved = charge.sensitivity
    if charge.price.noise == "rounded_gaussian":
        return float(moved.l2_squared) ** 0.5
    return float({"discrete_cube": moved.largest, "none": 0}.get(charge.price.noise, moved.l1))


def open_watched(rows, bill, source, journal):
    def answer(questions):
        charges, _ = bill.charge(questions)
        given = []
        for charge, exact in zip(charges, rows.sums(questions), strict=True):
            noisy = NOISY[charge.price.noise](
                values=exact, sensitivity=declared(charge), charge=charge, omega=bill.omega
            )
            given.append(Answer(np.asarray(noisy), charge.lengths, charge.price.noise, charge.price.sd))
        journal.record(charges, given)
        return given

    return Asking(answer, bill.sd)


def judged(name, relation, delta, samples):
    """Every pair of tables by record and replay; the first one by dp-recorder's own samples, too."""
    mechanism = mechanisms()[name]
    epsilon = Fraction(1)
    budget = Accountant.pure(epsilon) if delta is None else Accountant.gaussian(epsilon, delta)
    found = {"mechanism": name, "relation": relation, "delta": float(delta or 0), "pairs": 0, "calls": 0}
    for number, pair in enumerate(pairs(mechanism, mechanism.params(), relation)):
        bench = runs.Bench(mechanism, mechanism.params(), pair, budget, dict(mechanism.stages))
        auditor = Auditor()
        try:
            for table in (0, 1):
                if table:
                    auditor.set_replay()
                with auditor:
                    _, asked, model = bench.release(table)
                    made = list(model.draw(min(20, max(0, model.total)), np.random.default_rng(1)))
                    # One at a time: of several it checks the first only.
                    ensure_equality(asked=str(asked))
                    ensure_equality(total=model.total)
                    ensure_equality(facts=str(model.facts))
                    ensure_equality(rows=str(made))
            auditor.validate_records()
        except AssertionError as error:
            return found | {"says": str(error).splitlines()[0]}
        found["pairs"] += 1
        found["calls"] += sum(entry.kind != "EQ" for entry in auditor.log)
        if number == 0 and samples:
            found["its_epsilon"] = sampled(auditor, samples, float(delta or 1e-5))
    return found | {"says": "nothing"}


def sampled(auditor, samples, delta):
    auditor.run_distributional_audit(n_samples=samples)
    auditor.compute_overall_pld()
    return float(auditor.get_overall_current_guarantee(delta=delta))


def main():
    samples = int(sys.argv[1])
    runs.open_curator = open_watched
    names = [name for name, mechanism in mechanisms().items() if not mechanism.stream]
    if "broken" in sys.argv:
        right = prices.sensitivity
        prices.sensitivity = lambda question, omega: right(question, replace(omega, neighbours="add_remove"))
        print(json.dumps(judged("marginals", "replace_one", None, 0)))
        return
    print(json.dumps({"version": version("dp-recorder")}))
    for name in names:
        for relation in ("add_remove", "replace_one"):
            for delta in (None, DELTA):
                own = samples if name == "marginals" else 0
                print(json.dumps(judged(name, relation, delta, own)), flush=True)


if __name__ == "__main__":
    main()

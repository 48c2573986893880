"""Train on a table, test on real rows: four classifiers of scikit-learn (the optional extra `ml`)."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.errors import UsageError
from dpsynth_cli.evaluate.metrics.scales import missing, ranks
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.questions import Floats, Ints

TRAIN, SVM_TRAIN, TEST = 20_000, 3_000, 10_000  # rows, at most
INSTALL = "scikit-learn is not installed: pip install 'dpsynth-cli[ml]'"


def available() -> bool:
    return find_spec("sklearn") is not None


def require() -> None:
    """Refuse, in one line, where scikit-learn is not installed."""
    if not available():
        raise UsageError(f"classifiers need scikit-learn, which {INSTALL.partition(' ')[2]}")


def scores(train: Table, test: Table, domain: Domain, target: str) -> dict[str, Any]:
    """Accuracy, ROC AUC and F1 on test rows of each classifier, trained on a table. AUC and F1 are means over
    the classes of one against the rest; with two classes AUC is the usual one.
    """
    train, test = train.at_most(TRAIN), test.at_most(TEST)
    x, y = _features(train, test, domain, target), train.codes[target].astype(np.int64)
    test_x, test_y = _features(test, test, domain, target), test.codes[target].astype(np.int64)
    found = {}
    for name, model, rows in _models():
        part = train.at_most(rows) if rows else train
        few = part.codes[target].astype(np.int64)
        use = (_features(part, test, domain, target), few) if len(np.unique(few)) > 1 else (x, y)
        found[name] = _score(model, *use, test_x, test_y, domain[target].codes)
    return found | {
        f"mean_{key}": float(np.mean([found[name][key] for name in list(found)]))
        for key in ("accuracy", "auc", "f1")
    }


def _models() -> list[tuple[str, Any, int | None]]:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC

    return [
        ("logistic regression", LogisticRegression(max_iter=300), None),
        ("random forest", RandomForestClassifier(100, min_samples_leaf=3, random_state=0), None),
        ("nearest neighbours", KNeighborsClassifier(15), None),
        ("SVM", SVC(random_state=0), SVM_TRAIN),
    ]


def _features(table: Table, real: Table, domain: Domain, target: str) -> Floats:
    """Categories as indicators; of the others their places among the real values, so that bounds do not
    matter."""
    blocks = []
    for column in domain:
        if column.name == target:
            continue
        codes = table.codes[column.name]
        if column.type in ("nominal", "boolean"):
            blocks += [(codes == k).astype(np.float64) for k in range(column.codes)]
        else:
            blocks.append(ranks(codes, real.codes[column.name], column))
            if column.nullable:
                blocks.append(missing(codes, column).astype(np.float64))
    return np.stack(blocks, axis=1)


def _score(model: Any, x: Floats, y: Ints, test_x: Floats, test_y: Ints, classes: int) -> dict[str, float]:
    from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

    known = np.unique(y)
    if len(known) < 2:  # nothing to learn
        guess = np.full(len(test_y), known[0] if len(known) else 0)
        return {"accuracy": float(accuracy_score(test_y, guess)), "auc": 0.5,
                "f1": float(f1_score(test_y, guess, average="macro", zero_division=0))}  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it did not converge is seen in the score
        model.fit(x, y)
        guess = model.predict(test_x)
        by_score = hasattr(model, "decision_function")
        raw = model.decision_function(test_x) if by_score else model.predict_proba(test_x)
    if raw.ndim == 1:
        raw = np.column_stack([-raw, raw])
    whole = np.full((len(test_y), classes), raw.min() - 1.0)
    whole[:, known] = raw
    there = [k for k in np.unique(test_y) if 0 < (test_y == k).sum() < len(test_y)]
    areas = [roc_auc_score(test_y == k, whole[:, k]) for k in there]
    return {
        "accuracy": float(accuracy_score(test_y, guess)),
        "auc": float(np.mean(areas)) if areas else 0.5,
        "f1": float(f1_score(test_y, guess, average="macro", zero_division=0)),
    }

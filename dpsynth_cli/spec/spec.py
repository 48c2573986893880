"""The spec: a YAML document, strict, frozen, versioned.

Everything is checked before a byte of data is read, and all mistakes are reported at once, each with
its key, its line, its value, what is allowed, and for a misspelt word the nearest right one.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

from dpsynth_cli.domain import CsvOptions, Domain
from dpsynth_cli.errors import UsageError
from dpsynth_cli.mechanisms.registry import Mechanism, mechanisms
from dpsynth_cli.spec.columns import column_document, read_columns
from dpsynth_cli.spec.evaluate import Evaluation, evaluation_document, read_evaluation
from dpsynth_cli.spec.mechanism import param_document, read_params, read_split, read_strata
from dpsynth_cli.spec.reader import Section, Wrong, choice, flag, positive, text, whole
from dpsynth_cli.spec.source import override, parse_file, set_key
from dpsynth_cli.spec.yaml_nodes import Keys, Mistake, Node, Place, Scalar, dotted, from_json

VERSION = 1
NEIGHBOURS = ("add_remove", "replace_one")
INPUTS = (".csv", ".csv.gz", ".parquet")
OUTPUTS = (".csv", ".parquet")
MOST_ROWS = 10**10
LARGEST_SEED = 2**63 - 1
LONGEST_NAME = 100
DELIMITER = r"[\t !#-/:-@\[-`{-~]"  # ASCII, neither letter nor digit nor quotation mark

_NAME = f"text without / or \\, at most {LONGEST_NAME} characters, such as trips"
_DATASET = f"text on one line, at most {LONGEST_NAME} characters, such as trips-2026"
_INPUT = "a .csv, .csv.gz or .parquet file, a folder of Parquet files, or - for standard input"
_OUTPUT = "a .csv or .parquet file, or - for standard output"


@dataclass(frozen=True)
class Privacy:
    """What the release may cost, under which relation, and from whose budget.

    No epsilon: the release is by groups, and not differentially private.
    """

    epsilon: Fraction | None
    delta: Fraction | None
    neighbours: str
    dataset: str

    @property
    def budget(self) -> Fraction:
        """The epsilon of a release that has one."""
        if self.epsilon is None:
            raise UsageError("a release by groups has no privacy budget.", next_step="")
        return self.epsilon


@dataclass(frozen=True)
class Spec:
    """A checked spec.

    `rows` is None for as many as the private total says. Paths are as to be opened from the current
    folder; `input` is empty where the document was a public one. `effective` is the document after
    overrides with its defaults filled in, exact numbers as text: `from_document` gives the same Spec.
    `places` says where each key of the first two levels was written.
    """

    name: str
    input: str
    output: str
    rows: int | None
    privacy: Privacy
    mechanism: Mechanism
    params: Any
    split: dict[str, float]
    domain: Domain
    seed: int | None
    csv: CsvOptions
    evaluation: Evaluation
    effective: dict[str, Any]
    places: dict[str, str] = field(default_factory=dict, compare=False)


def load_spec(
    path: str,
    overrides: Sequence[str] = (),
    *,
    input: str | None = None,
    output: str | None = None,
    rows: str | int | None = None,
    registry: Mapping[str, Mechanism] | None = None,
) -> Spec:
    """The spec in a file, with what the command line overrides; all mistakes in one UsageError."""
    document, mistakes = parse_file(path)
    for setting in overrides:
        document = override(document, setting, mistakes)
    for key, value in (("input", input), ("output", output), ("rows", rows)):
        if value is not None:
            place = Place(f"--{key}")
            document = set_key(document, [key], Scalar(str(value), place, quoted=key != "rows"), place)
    folder = os.path.dirname(path)
    spec = _read(document, mistakes, folder, mechanisms() if registry is None else registry)
    if spec is None:
        raise _refusal(mistakes, f"Correct this, then: dpsynth check {shlex.quote(path)}")
    return spec


def from_document(document: Any, *, registry: Mapping[str, Mechanism] | None = None) -> Spec:
    """The Spec of an effective or public document, as an audit or a transcript records it."""
    tree = from_json(_columns_by_name(document), Place("the recorded spec"))
    if not isinstance(tree, Keys):
        raise UsageError("The recorded spec is not a spec.")
    mistakes: list[Mistake] = []
    public = "input" not in tree.entries
    spec = _read(tree, mistakes, "", mechanisms() if registry is None else registry, public)
    if spec is None:
        raise _refusal(mistakes, "It was edited, or comes from another version of dpsynth.")
    return spec


def _columns_by_name(document: Any) -> Any:
    """A recorded document lists its columns, since their order matters; a spec has them by name."""
    columns = document.get("columns") if isinstance(document, dict) else None
    if not isinstance(columns, list) or not all(_is_named(column) for column in columns):
        return document
    by_name = {column["name"]: {k: v for k, v in column.items() if k != "name"} for column in columns}
    return document | {"columns": by_name} if len(by_name) == len(columns) else document


def _is_named(column: Any) -> bool:
    return isinstance(column, dict) and isinstance(column.get("name"), str)


def public_document(effective: Mapping[str, Any]) -> dict[str, Any]:
    """The effective document without where the data and the output are kept.

    >>> public_document({"name": "trips", "input": "/secret/trips.csv", "output": "/home/ann/trips.csv"})
    {'name': 'trips', 'output': 'trips.csv'}
    """
    public = {key: value for key, value in effective.items() if key != "input"}
    return public | {"output": os.path.basename(public["output"])}


def exact(value: Fraction) -> str:
    """A finite decimal as text, so that Fraction gives it back.

    >>> exact(Fraction("0.10")), exact(Fraction("1e-9")), exact(Fraction(100))
    ('0.1', '1E-9', '100')
    """
    context = Context(prec=2000)
    short = context.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(context)
    return format(short, "f") if -6 <= short.adjusted() <= 15 else str(short)


def _refusal(mistakes: list[Mistake], next_step: str) -> UsageError:
    in_order = sorted(mistakes, key=lambda mistake: (mistake.place.line is None, mistake.place.line or 0))
    return UsageError("\n".join(map(str, in_order)), next_step=next_step)


def _read(
    tree: Keys, mistakes: list[Mistake], folder: str, registry: Mapping[str, Mechanism], public: bool = False
) -> Spec | None:
    """The Spec that a document says, or None where there are mistakes."""
    document = Section(tree, "", mistakes)
    document.required("dpsynth", whole(f"{VERSION}, the version of the spec", VERSION, VERSION), VERSION)
    name = document.required("name", _name, "")
    document.known += (
        "input",
        "output",
    )  # read below, as privacy is, when it is known what the mechanism needs
    rows = document.optional("rows", _rows, None)
    rows_hint = document.optional(
        "rows_hint", whole(f"a whole number from 1 to {MOST_ROWS}, a public guess", 1, MOST_ROWS), None
    )

    document.known.append("privacy")
    columns = read_columns(document)
    section = document.section("mechanism", "name: pmm")
    mechanism = registry.get(section.required("name", choice(registry), ""))
    strata = read_strata(section, columns)
    params, split, named_at, private = None, dict[str, float](), Place(""), True
    if mechanism is not None:
        named_at = section.keys.entries["name"].place
        params = read_params(section, mechanism)
        private = mechanism.private(params)
        if private:
            split = read_split(section, mechanism)
        else:
            _unused(section, "split")
        section.finish()
    privacy = _read_privacy(document, name, private)
    needs = document.optional if public or (mechanism and mechanism.stream) else document.required
    source = needs("input", _path(folder, INPUTS, _INPUT, folders=True), "")
    output = document.required("output", _path(folder, OUTPUTS, _OUTPUT), "-")
    if _overwrites(source, output):
        document.note("output", f"is {output}, which is the input or inside it; it must be another file")

    section = document.section("csv", "{multiline: true}", needed=False)
    csv = CsvOptions(
        section.optional("multiline", flag, False), section.optional("delimiter", _delimiter, ",")
    )
    section.finish()
    section = document.section("sampling", "{seed: 7}", needed=False)
    seed = section.optional("seed", whole(f"a whole number from 0 to {LARGEST_SEED}", 0, LARGEST_SEED), None)
    if not private:
        _unused(section, "seed")
        _unused(document, "rows_hint")
    section.finish()
    evaluation = read_evaluation(document, columns, strata, privacy.epsilon)
    document.finish()

    domain = Domain(columns, privacy.neighbours, rows_hint, strata)
    shaky = ("", "the document", "columns", "mechanism", "rows_hint", "privacy", "privacy.neighbours")
    if mechanism and not any(
        m.path in shaky or m.path.startswith(("columns.", "mechanism.")) for m in mistakes
    ):
        mistakes += [Mistake(named_at, "", unfit) for unfit in mechanism.fits(domain, params)]
    if mistakes or mechanism is None:
        return None
    spec = Spec(
        name, source, output, rows, privacy, mechanism, params, split, domain, seed, csv, evaluation, {},
        _places(tree),
    )  # fmt: skip
    return replace(spec, effective=_effective(spec))


def _read_privacy(document: Section, name: str, private: bool) -> Privacy:
    section = document.section("privacy", "epsilon: 1.0", needed=private)
    epsilon, delta, neighbours = None, None, NEIGHBOURS[0]
    if private:
        epsilon = section.required("epsilon", positive("a positive number such as 1.0"), Fraction(1))
        delta = section.optional("delta", positive("a number between 0 and 1 such as 1e-9", below=1), None)
        neighbours = section.optional("neighbours", choice(NEIGHBOURS), neighbours)
    else:
        for key in ("epsilon", "delta", "neighbours"):
            _unused(section, key)
    dataset = section.optional("dataset", text(_DATASET, LONGEST_NAME), name)
    section.finish()
    return Privacy(epsilon, delta, neighbours, dataset)


def _unused(section: Section, key: str) -> None:
    """Refuse a key that would promise something: a release by groups has no budget, no noise and no seed."""
    section.known.append(key)
    entry = section.keys.entries.get(key)
    if entry is None or (isinstance(entry.node, Scalar) and entry.node.null):
        return
    if not (isinstance(entry.node, Keys) and not entry.node.entries):
        section.note(key, "is stated, but a release by groups is not differentially private; leave it out")


def _effective(spec: Spec) -> dict[str, Any]:
    privacy, domain = spec.privacy, spec.domain
    return {
        "dpsynth": VERSION,
        "name": spec.name,
        **({"input": spec.input} if spec.input else {}),
        "output": spec.output,
        "rows": "noisy" if spec.rows is None and privacy.epsilon is not None else spec.rows,
        "rows_hint": domain.rows_hint,
        "privacy": _effective_privacy(privacy),
        "mechanism": {"name": spec.mechanism.name, "strata": domain.strata, "split": spec.split}
        | param_document(spec.params),
        "columns": [{"name": column.name} | column_document(column) for column in domain],
        "csv": asdict(spec.csv),
        "sampling": {"seed": spec.seed},
        "evaluate": evaluation_document(spec.evaluation, exact, privacy.epsilon is not None),
    }


def _effective_privacy(privacy: Privacy) -> dict[str, Any]:
    if privacy.epsilon is None:
        return {"dataset": privacy.dataset}
    return {
        "epsilon": exact(privacy.epsilon),
        "delta": None if privacy.delta is None else exact(privacy.delta),
        "neighbours": privacy.neighbours,
        "dataset": privacy.dataset,
    }


def _places(tree: Keys) -> dict[str, str]:
    places = {}
    for key, (place, node) in tree.entries.items():
        places[key] = str(place)
        for inside, entry in node.entries.items() if isinstance(node, Keys) else ():
            places[dotted(key, inside)] = str(entry.place)
    return places


def _name(node: Node) -> str:
    """A name that may also be part of a file's name."""
    name = text(_NAME, LONGEST_NAME)(node)
    if "/" in name or "\\" in name:
        raise Wrong(_NAME)
    return name


def _rows(node: Node) -> int | None:
    if isinstance(node, Scalar) and node.text == "noisy":
        return None
    return whole(f"noisy, or a whole number from 1 to {MOST_ROWS}", 1, MOST_ROWS)(node)


def _delimiter(node: Node) -> str:
    if isinstance(node, Scalar) and re.fullmatch(DELIMITER, node.text):
        return node.text
    raise Wrong('one ASCII sign such as ";", "|" or, for a tab, "\\t" (in double quotes)')


def _path(
    folder: str, endings: tuple[str, ...], allowed: str, folders: bool = False
) -> Callable[[Node], str]:
    """A converter to paths: as opened from here, whether relative to the spec or to the current folder."""

    def convert(node: Node) -> str:
        written = text(allowed)(node)
        if written == "-":
            return written
        from_spec = os.path.join(folder if node.place.line is not None else "", written)
        short = os.path.normpath(from_spec)
        path = short if os.path.realpath(short) == os.path.realpath(from_spec) else from_spec
        if path.endswith(endings):
            return path
        bare = not os.path.splitext(os.path.basename(short))[1]
        if folders and (bare or written.endswith("/") or os.path.isdir(path)):
            return os.path.join(path, "")
        raise Wrong(allowed)

    return convert


def _overwrites(source: str, output: str) -> bool:
    if source in ("", "-") or output == "-":
        return False
    if os.path.exists(source) and os.path.exists(output) and os.path.samefile(source, output):
        return True
    inside, data = os.path.realpath(output), os.path.realpath(source)
    return inside == data or inside.startswith(os.path.join(data, ""))

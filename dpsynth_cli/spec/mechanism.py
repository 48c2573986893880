"""The `mechanism` section of the spec: the mechanism's own parameters and stages, and the strata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, replace
from operator import attrgetter, methodcaller
from typing import Any

from dpsynth_cli.domain import CATEGORICAL, Column
from dpsynth_cli.errors import UsageError
from dpsynth_cli.mechanisms.registry import Mechanism, Structure
from dpsynth_cli.spec.keys import Key, Kind, Schema, Section, as_it_is, object_schema, written
from dpsynth_cli.spec.kinds import FLAG, number, one_of, positive, text
from dpsynth_cli.spec.reader import Reader, Wrong, did_you_mean, listed
from dpsynth_cli.spec.source import override
from dpsynth_cli.spec.yaml_nodes import Keys, Mistake, Node, Place, Scalar, as_plain, shortened

MECHANISM = Section(
    "mechanism",
    (),
    "how it is made; a name alone, such as `mechanism: auto`, is its `name`",
    such_as="name: pmm",
    required=True,
    of=as_it_is,
    write=lambda spec: written(keys_of(spec.mechanism), spec),
    short="name",
)
NAME = Key(
    "name",
    text("the name of a mechanism"),
    "one of the mechanisms",
    required=True,
    default="",
    of=attrgetter("mechanism.name"),
)
STRATA = Key(
    "strata",
    text("the name of a declared column"),
    "a declared nominal, ordinal or boolean column: a model for each of its classes",
    of=attrgetter("domain.strata"),
)
SPLIT = Section(
    "split",
    (),
    "a positive weight for stages of the mechanism; only proportions matter, stages that are left out keep "
    "their default",
    such_as="",
)
_POSITIVE = positive("a positive number; only proportions matter")
_WEIGHT = Kind(lambda node: float(_POSITIVE.read(node)), _POSITIVE.schema)


SHARED = (NAME, STRATA, SPLIT)  # by all mechanisms


def keys_of(mechanism: Mechanism) -> tuple[Key | Section, ...]:
    """The keys of the section where it names this mechanism."""
    printed = (printed_of(mechanism),) if mechanism.printed else ()
    return (NAME, STRATA, split_of(mechanism), *parameters_of(mechanism), *printed)


def split_of(mechanism: Mechanism) -> Section:
    """The key for the weights of the mechanism's stages."""
    usual = ", ".join(f"{stage}: {weight:g}" for stage, weight in mechanism.stages.items())
    stages = tuple(
        Key(stage, _WEIGHT, "a share of the budget", default=float(weight), of=methodcaller("get", stage))
        for stage, weight in mechanism.stages.items()
    )
    return replace(SPLIT, keys=stages, such_as=f"{{{usual}}}")


def parameters_of(mechanism: Mechanism) -> tuple[Key, ...]:
    """The keys for the mechanism's own parameters, as the fields of its Params state them."""
    keys = []
    for own in fields(mechanism.params):
        assert own.default is not MISSING
        kept = attrgetter(f"params.{own.name}")
        keys.append(Key(own.name, _kind(own.metadata), own.metadata["help"], default=own.default, of=kept))
    return tuple(keys)


def printed_of(mechanism: Mechanism) -> Key:
    """The key for the algorithm of the mechanism's paper: another name for some of its parameters."""
    means = ", ".join(f"{name}: {value}" for name, value in mechanism.printed.items())
    return Key(
        "printed",
        FLAG,
        f"the paper's algorithm, to the letter but for the errata; it means {means}",
        default=False,
        brief=True,
        of=lambda spec: all(getattr(spec.params, name) == value for name, value in mechanism.printed.items()),
    )


def read_params(section: Reader, mechanism: Mechanism) -> dict[str, Any]:
    """The parameters: stated ones, else those of the paper if these are asked for, else their defaults."""
    means = mechanism.printed if mechanism.printed and section.value(printed_of(mechanism)) else {}
    keys = [replace(key, default=means.get(key.name, key.default)) for key in parameters_of(mechanism)]
    values = section.values(keys)
    for name, value in means.items():
        if values[name] != value:
            section.note(
                name, f"is {values[name]}, but printed: true means {name}: {value}; leave one of them out"
            )
    return values


def stated_params(mechanism: Mechanism, settings: Sequence[str]) -> Any:
    """The parameters where some are stated as KEY=VALUE, on a command line without a spec."""
    mistakes = list[Mistake]()
    document = Keys({}, Place("--set"))
    for setting in settings:
        document = override(document, setting, mistakes)
    section = Reader(document, "", mistakes)
    params = mechanism.params(**read_params(section, mechanism))
    section.finish()
    if mistakes:
        raise UsageError(
            "\n".join(map(str, mistakes)), next_step=f"dpsynth mechanisms {mechanism.name} lists parameters."
        )
    return params


def read_name(section: Reader, registry: Mapping[str, Mechanism]) -> Mechanism | None:
    """The mechanism, if there is one of this name."""
    return registry.get(section.value(NAME, one_of(registry)))


def read_strata(section: Reader, columns: tuple[Column, ...]) -> str | None:
    """The column whose classes get a model each, if any."""
    strata: str | None = section.value(STRATA)
    types = {column.name: column.type for column in columns}
    allowed = [name for name, kind in types.items() if kind in CATEGORICAL]
    if strata is None or not types or types.get(strata) == "":
        return strata  # nothing to check, or the column's own mistake has been noted
    if strata not in allowed:
        choices = listed(allowed) + did_you_mean(strata, allowed) if allowed else "there is none"
        section.note(
            "strata",
            f"is {shortened(strata)}; it must be a declared ordinal, nominal or boolean column: {choices}",
        )
    elif len(types) == 1:
        section.note(
            "strata", f"is {shortened(strata)}, the only column; there must be another one to release"
        )
    return strata


def read_split(section: Reader, mechanism: Mechanism) -> dict[str, float]:
    """The weight of each stage: the stated one, else its default."""
    declared = split_of(mechanism)
    stages = section.section(declared)
    weights = stages.values(declared.keys)
    stages.finish()
    return weights


def mechanism_schema(registry: Mapping[str, Mechanism]) -> Schema:
    """The JSON Schema of the section: the keys of each mechanism."""
    return {
        "description": MECHANISM.about,
        "oneOf": [{"enum": list(registry)}, *(_own_schema(mechanism) for mechanism in registry.values())],
    }


def _own_schema(mechanism: Mechanism) -> Schema:
    schema = object_schema(keys_of(mechanism))
    schema["properties"]["name"] = {"const": mechanism.name}
    return {"description": mechanism.summary} | schema


def _kind(stated: Mapping[str, Any]) -> Kind:
    """What a parameter may be: a word, a structure or a number."""

    def read(node: Node) -> Any:
        if stated["auto"] and isinstance(node, Scalar) and node.text == stated["auto"]:
            return None
        if stated["structure"]:
            return _structured(node, stated["structure"])
        if stated["choices"]:
            return one_of(words)(node)
        value = number(stated_range(stated), stated["low"], stated["high"], whole=stated["whole"])(node)
        return int(value) if stated["whole"] else float(value)

    def write(value: Any) -> Any:
        if value is None and stated["auto"]:
            return stated["auto"]
        return list(value) if isinstance(value, tuple) else value

    words = (*stated["choices"], *((stated["auto"],) if stated["auto"] else ()))
    allowed: list[Schema] = [{"enum": list(words)}] if words else []
    if stated["structure"]:
        allowed.append(dict(stated["structure"].schema))
    elif not stated["choices"]:
        limits = {"minimum": stated["low"], "maximum": stated["high"]}
        stated_limits = {limit: value for limit, value in limits.items() if value is not None}
        allowed.append({"type": "integer" if stated["whole"] else "number"} | stated_limits)
    return Kind(read, allowed[0] if len(allowed) == 1 else {"anyOf": allowed}, write)


def _structured(node: Node, structure: Structure) -> Any:
    try:
        return structure.read(as_plain(node))
    except ValueError as error:
        raise Wrong(str(error)) from None


def stated_range(stated: Mapping[str, Any]) -> str:
    """What a parameter may be, in words.

    >>> stated = {"structure": None, "choices": (), "low": 1, "high": 30, "whole": True, "auto": "auto"}
    >>> stated_range(stated)
    'a whole number from 1 to 30, or auto'
    """
    if stated["structure"]:
        words = str(stated["structure"].allowed)
    elif stated["choices"]:
        words = ", ".join(stated["choices"])
    else:
        low, high = stated["low"], stated["high"]
        words = "a whole number" if stated["whole"] else "a number"
        if low is not None and high is not None:
            words += f" from {low} to {high}"
        elif low is not None:
            words += f", at least {low}"
        elif high is not None:
            words += f", at most {high}"
    return words + (f", or {stated['auto']}" if stated["auto"] else "")

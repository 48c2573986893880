"""The generated parts of these documents, one function each; cog puts what it prints in its place.

`make docs` writes them again, `make lint` finds those that are out of date.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer

from dpsynth_cli.cli.main import app
from dpsynth_cli.mechanisms.registry import mechanisms
from dpsynth_cli.spec.columns import KEYS as COLUMN_KEYS
from dpsynth_cli.spec.document import DOCUMENT
from dpsynth_cli.spec.keys import Key, Section
from dpsynth_cli.spec.mechanism import SHARED, stated_range

ROOT = Path(__file__).resolve().parent.parent


def page_of(name: str) -> str:
    """The page of a mechanism, from this folder: a stream's is the page about streams."""
    return "streams.md" if mechanisms()[name].stream else f"mechanisms/{name}.md"


def mechanism_table(folder: str = "") -> None:
    """All mechanisms; `folder` leads from the document to this folder."""
    rows = (
        (f"[`{one.name}`]({folder}{page_of(one.name)})", one.suits, one.summary)
        for one in mechanisms().values()
    )
    _table(("mechanism", "for", "what it does"), rows)


def parameters(name: str) -> None:
    """The parameters and stages of one mechanism, and whose work it is."""
    mechanism = mechanisms()[name]
    if not fields(mechanism.params) and not mechanism.stages:
        print("It has none, and no stages. " + mechanism.citation + ".")
        print()
        return
    rows = (
        (f"`{own.name}`", f"`{_default(own)}`", stated_range(own.metadata), own.metadata["help"])
        for own in fields(mechanism.params)
    )
    if fields(mechanism.params):
        _table(("parameter", "default", "allowed", "what it is"), rows)
    else:
        print("It has none of its own.")
        print()
    stages = ", ".join(f"`{stage}` {weight:g}" for stage, weight in mechanism.stages.items())
    print(f"Stages of `mechanism.split`, with their default weights: {stages}.")
    print()
    print(f"After: {mechanism.citation}.")
    print()


def section_keys(name: str) -> None:
    """The keys of a section of the spec, without a mechanism's own."""
    sections = {key.name: key.keys for key in DOCUMENT if isinstance(key, Section)} | {"mechanism": SHARED}
    _table(("key", "default", "what it is"), map(_key, sections[name]))


def coverage() -> None:
    """How often intervals held, from the file of `python -m benchmarks coverage`."""
    sys.path.append(str(ROOT))
    from benchmarks.covering import Results, table
    from benchmarks.surveys import KINDS

    lines = list(table(Results.at(ROOT / "benchmarks" / "coverage.json"), KINDS))
    _table(tuple(lines[0]), (tuple(line.values()) for line in lines))


def functions() -> None:
    """What an expression may call."""
    from dpsynth_cli.relations.functions import FUNCTIONS
    from dpsynth_cli.relations.kinds import Facts

    rows = []
    for name, one in FUNCTIONS.items():
        kinds = dict.fromkeys(Facts(kind).in_words for kind in one.kinds if kind != "integer")
        count = str(one.least) if one.most == one.least else f"{one.least} to {one.most}"
        rows.append((f"`{name}`", count, ", ".join(kinds) or "anything of one kind", one.about))
    _table(("function", "arguments", "of", "gives"), rows)


def document_keys() -> None:
    """The keys of a whole spec; the words of a section lead to it."""
    rows = map(_key, DOCUMENT)
    sections = {f"`{key.name}`": f"#{key.name}" for key in DOCUMENT if isinstance(key, Section)}
    linked = (
        (key, default, f"[{about}]({sections[key]})" if key in sections else about)
        for key, default, about in rows
    )
    _table(("key", "default", "what it is"), linked)


def column_keys() -> None:
    """The keys of a column, and the types that have them."""
    keys = {key.name: key for own in COLUMN_KEYS.values() for key in own}
    rows = []
    for key in keys.values():
        types = [kind for kind, own in COLUMN_KEYS.items() if key.name in [one.name for one in own]]
        name, default, about = _key(key)
        rows.append((name, "all" if len(types) == len(COLUMN_KEYS) else ", ".join(types), default, about))
    _table(("key", "of", "default", "what it is"), rows)


def _key(key: Key | Section) -> tuple[str, str, str]:
    """A key, what it is where it is left out, and its words."""
    default = key.kind.write(key.default) if isinstance(key, Key) else None
    usual = "" if default is None else f"`{default if isinstance(default, str) else json.dumps(default)}`"
    needed = f"needed, unless {key.unless}" if key.unless else "needed"
    return f"`{key.name}`", needed if key.required else usual, key.about


def parameter_links() -> None:
    """Where the parameters of each mechanism are."""
    print()
    for name in mechanisms():
        print(f"- [`{name}`]({page_of(name)}#parameters)")
    print()


def commands() -> None:
    """Every command and what it does, in one line."""
    rows = (
        (f"[`{name}`](#{_anchor(name)})", _sentence(command.help)) for name, command in _commands(_tree())
    )
    _table(("command", "what it does"), rows)


OFTEN = 6  # commands that have an option with the same words, from which it is described once for all


def _often() -> dict[tuple[str, str], int]:
    """Options by name and help, and how many commands have them."""
    found: dict[tuple[str, str], int] = {}
    for _, command in _commands(_tree()):
        for option in _options_of(command):
            found[_said(option)] = found.get(_said(option), 0) + 1
    return {said: count for said, count in found.items() if count >= OFTEN}


def _options_of(command: Any) -> list[Any]:
    shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
    return [parameter for parameter in shown if parameter.param_type_name == "option"]


def _said(option: Any) -> tuple[str, str]:
    return f"`{'`, `'.join([*option.opts, *option.secondary_opts])}`", option.help


def options() -> None:
    """Every command with its arguments and options; those that many have are described at the beginning."""
    often = _often()
    print()
    print("## Options of many commands")
    print()
    for names, about in often:
        print(f"- {names}: {about}")
    print()
    for name, command in _commands(_tree()):
        shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
        print(f"## {name}")
        print()
        print("    " + " ".join([name, *filter(None, map(_written, shown))]))
        print()
        for paragraph in (command.help or "").split("\n\n"):
            print(" ".join(paragraph.split()))
            print()
        said = [_said(option) for option in _options_of(command)]
        for names, about in said:
            if (names, about) not in often:
                print(f"- {names}: {about}")
        if also := [names.split(",")[0] for names, about in said if (names, about) in often]:
            print(f"- {'as everywhere' if len(also) < len(said) else 'As everywhere'}: {', '.join(also)}")
        print()


def trusted(section: str) -> None:
    """A section of the proof, as it stands beside the code."""
    text = (ROOT / "dpsynth_cli/trusted/README.md").read_text()
    print(text.split(f"\n## {section}\n")[1].split("\n## ")[0])


def _tree() -> Any:
    return typer.main.get_command(app)


def _commands(tree: Any, prefix: str = "dpsynth") -> Iterator[tuple[str, Any]]:
    for name, command in tree.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{prefix} {name}")
        else:
            yield f"{prefix} {name}", command


def _written(parameter: Any) -> str:
    """An argument, or an option that must be there, as in a line of usage."""
    name = parameter.metavar or parameter.name.upper()
    if parameter.param_type_name == "argument":
        return name if parameter.required else f"[{name}]"
    return f"{parameter.opts[0]} {name}" if parameter.required else ""


def _sentence(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split()).split(". ")[0].rstrip(".")


def _anchor(heading: str) -> str:
    return heading.replace(" ", "-")


def _default(own: Any) -> str:
    if own.default is None:
        return own.metadata["auto"] or "none"
    return str(own.default)


def _table(names: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    print()
    print(f"| {' | '.join(names)} |")
    print("|" + "---|" * len(names))
    for row in rows:
        print(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |")
    print()

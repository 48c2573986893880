"""The command line: every command, and the one place where errors become messages and exit codes."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any, NoReturn, TextIO, cast

import typer

from dpsynth_cli import __version__
from dpsynth_cli.cli import (
    audit_mechanism,
    budget,
    check,
    evaluate,
    export,
    init,
    json_lines,
    key,
    mechanisms,
    plan,
    query,
    record,
    release,
    replicates,
    report,
    sample,
    status,
    stopping,
    stream,
    verify,
)
from dpsynth_cli.errors import DpsynthError, MemoryShort

app = typer.Typer(
    name="dpsynth",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: importing what draws boxes takes longer than all the rest
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Private synthetic copies of CSV and Parquet tables, with an exact privacy budget and receipts.",
    epilog="Exit codes: 0 done, 1 a bug, 2 usage or spec, 3 budget, 4 verification, 5 files.",
)
app.command("init")(init.command)
app.command("check")(check.command)
app.command("plan")(plan.command)
app.command("release")(release.command)
app.command("status")(status.command)
app.command("sample")(sample.command)
app.command("export")(export.command)
app.command("query")(query.command)
app.command("replicates")(replicates.command)
app.command("verify")(verify.command)
app.command("evaluate")(evaluate.command)
app.command("report")(report.command)
app.command("record")(record.command)
app.command("audit-mechanism")(audit_mechanism.command)
app.add_typer(stream.app, name="stream")
app.add_typer(budget.app, name="budget")
app.add_typer(key.app, name="key")
app.command("mechanisms")(mechanisms.command)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dpsynth {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version."
    ),
) -> None:
    pass


def narrowed(app: typer.Typer, words: Sequence[str]) -> typer.Typer:
    """Only the command that is asked for, if one is: Typer looks at every option of all that it is given."""
    asked = [command for command in app.registered_commands if command.name in words[:1]]
    groups = [group for group in app.registered_groups if group.name in words[:1]]
    if not asked and not groups:
        return app
    one = copy(app)
    one.registered_commands = asked
    one.registered_groups = [copy(group) for group in groups]
    for group in one.registered_groups:
        assert group.typer_instance is not None
        group.typer_instance = narrowed(group.typer_instance, words[1:])
    return one


def run() -> None:
    """Run the command line and exit with the contract's codes."""
    gc.set_threshold(50_000)  # modules make objects by the thousand, and looking for garbage there finds none
    if not isinstance(sys.stdout, _Forgiving):  # called again in one process
        sys.stdout = cast(TextIO, _Forgiving(sys.stdout))
    try:
        stopping.watch()
        code = narrowed(app, sys.argv[1:])(standalone_mode=False)
        if code == 130:  # Typer met Ctrl-C, and says nothing
            raise KeyboardInterrupt
        sys.exit(code)
    except DpsynthError as error:
        _end(error, error.exit_code, f"Error: {error}")
    except KeyboardInterrupt as error:
        _end(error, 130, "Interrupted.")
    except stopping.Terminated as error:
        _end(error, 143, "Interrupted.")
    except MemoryError:
        short = MemoryShort("`dpsynth budget log` says whether budget was spent.")
        _end(short, short.exit_code, f"Error: {short}")
    except Exception as error:
        if type(error).__name__ == "Abort":  # Typer's own words, in whichever library it keeps them
            _end(error, 130, "Interrupted.")
        show, code = getattr(error, "show", None), getattr(error, "exit_code", None)
        if callable(show) and code is not None:
            show()
            # Its `message` is empty where an argument is missing.
            said = getattr(error, "format_message", None)
            _end(error, code, "", said() if callable(said) else "")
        # Never the error's own text: a library may have put a cell's content into it.
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}, line {where.lineno}"
        _end(
            error,
            1,
            f"Error: this is a bug in dpsynth {__version__}: {type(error).__name__} in {place}.\n"
            "Please report it with the command and the spec (never the data). If a release was under way,\n"
            "`dpsynth budget log` says whether budget was spent.",
        )


class _Forgiving:
    """Standard output, but whoever stops reading it does no harm: a finished release stays finished."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with self._unless_closed():
            return self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._unless_closed():
            self._stream.flush()

    @contextmanager
    def _unless_closed(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _end(error: BaseException, code: int, text: str, happened: str = "") -> NoReturn:
    """Say what went wrong, to people and if wanted to a program, and exit."""
    if text:
        typer.echo(text, err=True)
    if json_lines.wanted():
        json_lines.print_error(error, code, happened or text.removeprefix("Error: "))
    sys.exit(code)

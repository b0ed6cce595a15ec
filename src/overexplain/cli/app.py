"""The command line: parsing one gives the work to do; doing it, and what can go wrong, is not Typer's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

import typer
from typer import Option

from overexplain.cli import commands_on_endpoints, commands_on_files, commands_on_logs, commands_on_models
from overexplain.cli.arguments import Work, WrongUsage

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,  # plain help: fast, and the same in a pipe
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)
models = typer.Typer(rich_markup_mode=None)
logs = typer.Typer(rich_markup_mode=None)

_USAGE_ERROR: Any = typer.BadParameter.__mro__[1]  # the base of all usage errors, in whichever module typer keeps it


def parse(arguments: Sequence[str]) -> Work:
    """What the command line asks for, as something to call; raises WrongUsage."""
    try:
        work = _command()(args=list(arguments), prog_name="overexplain", standalone_mode=False)
    except SystemExit:  # Typer's word for a pipe that nobody reads any more
        raise BrokenPipeError from None
    except _USAGE_ERROR as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "overexplain"
        raise WrongUsage(f"{error.format_message().rstrip('.')}; see {command} --help") from None
    if work == 130:  # Typer's word for Ctrl-C while it parses
        raise KeyboardInterrupt
    return work if callable(work) else lambda: None  # --help and --version have nothing left to do


@cache
def _command() -> Any:
    """All commands, put together from their signatures: that takes a tenth of a second, so it is done once."""
    return typer.main.get_command(app)


@app.callback(invoke_without_command=True)
def overexplain(
    context: typer.Context,
    version: Annotated[bool, Option("--version", help="Print the version and leave.")] = False,
) -> None:
    """How much of a linear model do its explanations give away?"""
    if version:
        from overexplain.cli.output import version as installed

        typer.echo(f"overexplain {installed()}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@models.callback()
def look_at_models() -> None:
    """Look at stored models."""


@logs.callback()
def look_after_logs() -> None:
    """Look after logs of what a service was asked."""


for command in (
    commands_on_models.demo,
    commands_on_models.audit,
    commands_on_logs.monitor,
    commands_on_models.extract,
    commands_on_models.diagnose,
    commands_on_endpoints.probe,
    commands_on_endpoints.serve,
    commands_on_logs.certify,
):
    app.command()(command)
app.command(name="map")(commands_on_logs.draw_map)
app.command()(commands_on_logs.verify)
models.command()(commands_on_models.inspect)
app.add_typer(models, name="model")
for on_files in (commands_on_files.check, commands_on_files.show, commands_on_files.convert, commands_on_files.merge):
    logs.command()(on_files)
app.add_typer(logs, name="log")

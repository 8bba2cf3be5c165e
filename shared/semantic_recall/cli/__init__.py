"""The command `semantic-recall`."""

from __future__ import annotations

import sys
from importlib.metadata import version
from io import TextIOWrapper
from typing import Annotated

import typer

from semantic_recall.cli import calibrate, demo, doctor, inspect, mcp, reading, transfer, upkeep

__all__ = ["app", "main"]

_HELP = """Find the past messages that matter, in a memory kept in a folder.

The folder is given with --path or SEMANTIC_RECALL_PATH; it is ./memory otherwise.
"""
_EPILOG = (
    "Exit codes: 0 done; 1 error; 2 wrong usage; 3 done, but something is not as it should be "
    "(verify or doctor found a problem, import skipped records, forget could not finish, the demo "
    "did not recall); 130 interrupted."
)

app = typer.Typer(
    name="semantic-recall",
    help=_HELP,
    epilog=_EPILOG,
    no_args_is_help=True,
    # Values of local variables are message texts: they stay out of tracebacks.
    pretty_exceptions_show_locals=False,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.command("import", epilog=_EPILOG)(transfer.import_)
app.command("search")(reading.search)
app.command("threads")(reading.threads)
app.command("show")(reading.show)
app.command("stats")(reading.stats)
app.command("reindex")(upkeep.reindex)
app.command("verify", epilog=_EPILOG)(upkeep.verify)
app.command("calibrate")(calibrate.calibrate)
app.command("doctor", epilog=_EPILOG)(doctor.doctor)
app.command("inspect")(inspect.inspect)
app.command("forget")(upkeep.forget)
app.command("mcp")(mcp.mcp)
app.command("export")(transfer.export)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"semantic-recall {version('chat-semantic-recall')}")
        raise typer.Exit


@app.callback()
def _options(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; the entry point of `semantic-recall`."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character must not stop the command.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="semantic-recall")

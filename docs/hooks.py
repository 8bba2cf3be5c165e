"""What mkdocs fills in from the code and the README, so that no page states it twice.

A line `<!-- fill: name -->` in a page is replaced by what the function of that name returns.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import typer

from semantic_recall import MessageRange, RecallOptions, SemanticRecall, Settings
from semantic_recall.cli import app

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
_FILL = re.compile(r"^<!-- fill: (\w+) -->$", re.MULTILINE)
_END_OF_START = "\n## LangChain\n"
"""The README's part before this heading is the start page too."""


def start_of_readme() -> str:
    """Return the README up to its frameworks, without its title, with links as seen from docs/."""
    return _readme("\n", _END_OF_START)


def ranking() -> str:
    """Return what the README says of the ranking."""
    return _readme("\n## How messages are ranked\n", "\n## ")


def _readme(start: str, end: str) -> str:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    if start not in text or end not in text:
        raise ValueError(f"README.md has no {start.strip()!r} or no {end.strip()!r} any more")
    text = text.partition(start)[2].partition(end)[0]
    return re.sub(r'(?<=\()docs/|(?<=src=")docs/', "", text)


def options_table() -> str:
    """Return the options of a recall: field, type, default and meaning."""
    return _fields_table(RecallOptions)


def settings_table() -> str:
    """Return the settings of a memory: field, type, default and meaning."""
    return _fields_table(Settings)


def commands() -> str:
    """Return every command of the command line with its arguments and options."""
    return "\n\n".join(_command(command) for _, command in _commands())


def the_memory() -> str:
    """Return the reference of `SemanticRecall`: `open` first, each method before its twin."""
    names = [name for name in dir(SemanticRecall) if not name.startswith("_")]
    first = ["open", "remember", "recall", "process_input", "process_output", "forget", "history"]
    rest = [name for name in names if name not in first and f"a{name}" in names]
    twins = [twin for name in (*first, *rest) for twin in (name, f"a{name}") if twin in names]
    alone = [name for name in names if name not in twins]
    members = ", ".join([*twins, *alone])
    options = f"{{heading_level: 3, members: [{members}]}}"
    return f"::: semantic_recall.SemanticRecall\n    options: {options}"


def _commands() -> Iterator[tuple[str, Any]]:
    group: Any = typer.main.get_command(app)
    yield from group.commands.items()


def _command(command: Any) -> str:  # noqa: ANN401 - typer's click or click's own
    given = [each for each in command.params if each.param_type_name == "argument"]
    names = " ".join(str(each.metavar or each.name).upper() for each in given)
    first, _, rest = command.help.partition("\n\n")
    lines = [
        f"## {command.name}",
        "",
        f"`semantic-recall {' '.join([command.name, names]).strip()}`",
    ]
    lines += ["", _one_line(first)]
    if rest:
        lines += ["", _one_line(rest)]
    lines += ["", "| | |", "|---|---|"]
    for each in command.params:
        shown = ", ".join(f"`{name}`" for name in (*each.opts, *each.secondary_opts))
        if each in given:
            shown = f"`{str(each.metavar or each.name).upper()}`"
        lines.append(f"| {shown} | {_cell(each.help or '')} |")
    return "\n".join(lines)


def _fields_table(options: type[Any]) -> str:
    meanings = _field_docstrings(options)
    lines = ["| option | type | default | |", "|---|---|---|---|"]
    for each in dataclasses.fields(options):
        value = f"`{_default(each)}`"
        meaning = _cell(_one_line(meanings[each.name]))
        lines.append(
            f"| `{each.name}` | {_type(each.type, options.__module__)} | {value} | {meaning} |"
        )
    return "\n".join(lines)


def _field_docstrings(options: type[Any]) -> Mapping[str, str]:
    [tree] = ast.parse(inspect.getsource(options)).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for line, after in zip(tree.body, tree.body[1:], strict=False):
        match line, after:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = text
    return found


def _default(each: dataclasses.Field[Any]) -> str:
    value = each.default
    if value is dataclasses.MISSING:
        assert each.default_factory is not dataclasses.MISSING
        value = each.default_factory()
    if isinstance(value, MessageRange):
        return repr((value.before, value.after))
    if isinstance(value, frozenset):
        return "{" + ", ".join(map(repr, sorted(value))) + "}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:_}" if value >= 10_000 else str(value)
    shown = repr(value)
    return type(value).__name__ if shown.startswith("<") else shown


def _type(annotation: str, module: str) -> str:
    """Return the members of a union as they are written; of a Literal, its values."""
    members = []
    for name in annotation.split(" | "):
        meant = getattr(sys.modules[module], name, None)
        values = get_args(meant) if get_origin(meant) is Literal else ()
        members += [f'`"{value}"`' for value in values] or [f"`{name}`"]
    return " or ".join(members)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return _one_line(text).replace("|", "\\|")


FILLED: Mapping[str, Callable[[], str]] = {
    each.__name__: each
    for each in (start_of_readme, ranking, options_table, settings_table, the_memory, commands)
}


def filled(markdown: str) -> str:
    """Return a page's text with what is asked for put in."""
    return _FILL.sub(lambda found: FILLED[found[1]](), markdown)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the notebooks, which the pages link to and which lie beside docs/."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - the tests need no mkdocs

    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        files.append(
            File.generated(config, f"notebooks/{notebook.name}", abs_src_path=str(notebook))
        )
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in what comes from elsewhere, and make links out of docs/ point into the site."""
    text = filled(markdown)
    return text.replace("](../notebooks/", "](notebooks/") if "/" not in page.file.src_uri else text

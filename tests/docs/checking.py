"""Checks of code that cannot be run here: that it compiles and that its names exist."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from itertools import takewhile
from typing import Any

import typer

from semantic_recall.cli import app
from semantic_recall.options import RecallOverrides
from tests.docs.blocks import Block

_OPERATOR = re.compile(r"[|<>&;()]+")
_OPTION = re.compile(r"--?[a-z]")


def check_python(block: Block) -> None:
    """Compile a block; look up what it imports, and the keywords of the calls of it."""
    tree = ast.parse(block.code, block.place)
    names: dict[str, object] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.module is not None
            assert node.level == 0, block.place
            names.update(_imported(block, node.module, [alias.name for alias in node.names]))
        elif isinstance(node, ast.Import):
            for alias in node.names:
                names.update(_imported(block, alias.name, []))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            _check_keywords(block, node, names)


def _imported(block: Block, module: str, names: list[str]) -> dict[str, object]:
    try:
        found = import_module(module)
    except ModuleNotFoundError:
        # Then its package must be the reason that the page gives.
        package = re.sub("[._]", "-", module)
        words = re.findall(r"[a-z][a-z-]{5,}", block.not_run or "")
        assert any(package.startswith(word) for word in words), f"{block.place}: no {module}"
        return {}
    if not names:
        return {module.partition(".")[0]: import_module(module.partition(".")[0])}
    missing = [name for name in names if not _has(found, name)]
    assert not missing, f"{block.place}: {module} has no {', '.join(missing)}"
    return {name: getattr(found, name) for name in names if hasattr(found, name)}


def _has(module: Any, name: str) -> bool:
    if not hasattr(module, name) and hasattr(module, "__path__"):
        return find_spec(f"{module.__name__}.{name}") is not None
    return hasattr(module, name)


def _check_keywords(block: Block, call: ast.Call, names: dict[str, object]) -> None:
    called = _value(call.func, names)
    if not callable(called):
        return
    parameters = inspect.signature(called).parameters
    known = set(parameters)
    for each in parameters.values():
        if each.kind is inspect.Parameter.VAR_KEYWORD:
            if "RecallOverrides" not in str(each.annotation):
                return
            known |= set(RecallOverrides.__annotations__)
    given = {keyword.arg for keyword in call.keywords if keyword.arg is not None}
    assert given <= known, f"{block.place}: {ast.unparse(call.func)} takes no {given - known}"


def _value(node: ast.expr, names: dict[str, object]) -> object:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        return getattr(_value(node.value, names), node.attr, None)
    return None


def check_commands(block: Block) -> None:
    """Look up the commands and options of the `semantic-recall` lines of a shell block."""
    group: Any = typer.main.get_command(app)
    for words in _command_lines(block.code):
        name, *rest = words
        assert name in group.commands, f"{block.place}: there is no command {name}"
        known = {"--help"}
        for each in group.commands[name].params:
            known.update(each.opts, each.secondary_opts)
        given = {word.partition("=")[0] for word in rest if _OPTION.match(word)}
        assert given <= known, f"{block.place}: {name} takes no {given - known}"


def _command_lines(code: str) -> Iterator[list[str]]:
    for line in code.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(takewhile(lambda word: not _OPERATOR.fullmatch(word), lexer))
        if words[:1] == ["semantic-recall"] and words[1:] != ["--help"]:
            yield words[1:]

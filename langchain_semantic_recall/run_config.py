"""The config of a run in middleware, also where Python 3.10 hides it."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Annotated, Any, Final, cast
from uuid import uuid4

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.runnables import RunnableConfig
from langgraph.channels import UntrackedValue
from langgraph.config import get_config
from langgraph.runtime import Runtime
from typing_extensions import NotRequired

_RUNS: Final = 4096
_NAME: Final = "semantic_recall_run"

# Shared by all instances: several in one agent write the same entry of the state.
_KEPT: OrderedDict[str, Mapping[str, Any]] = OrderedDict()
_LOCK = threading.Lock()


class _RunState(AgentState[Any]):
    """A name of the run's config: not an output, not in a checkpoint."""

    semantic_recall_run: NotRequired[Annotated[str, UntrackedValue, PrivateStateAttr]]


class ConfigAware(AgentMiddleware[AgentState[Any], Any]):
    """Middleware that can read `config["configurable"]` in every hook.

    On Python 3.11 and later it is in a context variable. On 3.10 that variable is lost in async
    code (asyncio cannot hand it on), and only hooks that are nodes of the graph are given the
    config: there such a hook keeps it, under a name that the state carries to the others.
    """

    if sys.version_info < (3, 11):
        state_schema = cast("type[AgentState[Any]]", _RunState)

        def before_model(  # type: ignore[override] # LangGraph fills `config` in by its name
            self, state: AgentState[Any], runtime: Runtime[Any], config: RunnableConfig
        ) -> dict[str, Any]:
            """Keep the config."""
            return {_NAME: _keep(config.get("configurable", {}))}

        async def abefore_model(  # type: ignore[override]
            self, state: AgentState[Any], runtime: Runtime[Any], config: RunnableConfig
        ) -> dict[str, Any]:
            """Keep the config."""
            return self.before_model(state, runtime, config)

        def configurable(self, state: AgentState[Any]) -> Mapping[str, Any]:
            """Return `config["configurable"]` of the run; {} where it cannot be seen."""
            kept = _KEPT.get(cast("dict[str, Any]", state).get(_NAME, ""))
            return _in_context() if kept is None else kept

    else:

        def configurable(self, state: AgentState[Any]) -> Mapping[str, Any]:
            """Return `config["configurable"]` of the run; {} where it cannot be seen."""
            return _in_context()


def _in_context() -> Mapping[str, Any]:
    try:
        return get_config().get("configurable", {})
    except RuntimeError:  # outside a graph, or async on Python 3.10
        return {}


def _keep(configurable: Mapping[str, Any]) -> str:
    name = uuid4().hex
    with _LOCK:
        _KEPT[name] = configurable
        while len(_KEPT) > _RUNS:
            _KEPT.popitem(last=False)
    return name

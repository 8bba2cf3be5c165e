"""A tool with which a model searches its own memory."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field, ValidationError, field_validator
from typing_extensions import Unpack

from langchain_semantic_recall.ids import Ids, resolve
from semantic_recall.errors import InvalidIdError, InvalidOptionError
from semantic_recall.options import RecallOverrides
from semantic_recall.recall import SemanticRecall
from semantic_recall.types import as_utc

DESCRIPTION: Final = (
    "Search the messages of this and earlier conversations with the user. Use it when something "
    "was said before that you cannot see, such as a name, a date or a preference."
)
NOTHING: Final = "No earlier message was found."
UNAVAILABLE: Final = "There is no memory to search in this conversation."

# What a LangGraph run keeps its runtime under; a tool of langchain-core alone is given no other
# way to the run's context.
_RUNTIME: Final = "__pregel_runtime"


class RecallArguments(BaseModel):
    """What the model may say: never whose memory."""

    query: Annotated[
        str, Field(description="What to look for, in a sentence or a few words.", min_length=1)
    ]
    since: Annotated[
        datetime | None, Field(description="Only messages from this time on (ISO 8601, UTC).")
    ] = None
    until: Annotated[
        datetime | None, Field(description="Only messages before this time (ISO 8601, UTC).")
    ] = None
    conversations: Annotated[
        Literal["all", "this"],
        Field(description='"all" conversations of the user, or only "this" one.'),
    ] = "all"

    @field_validator("since", "until")
    @classmethod
    def _in_utc(cls, moment: datetime | None) -> datetime | None:
        """Refuse here, where the model is told, a time that only another time zone can express."""
        if moment is None:
            return None
        try:
            return as_utc(moment)
        except OverflowError as error:
            raise ValueError("the year is out of range") from error


def create_recall_tool(
    memory: SemanticRecall,
    *,
    name: str = "search_memory",
    description: str = DESCRIPTION,
    thread_id: str | None = None,
    resource_id: str | None = None,
    **overrides: Unpack[RecallOverrides],
) -> BaseTool:
    """Return a tool that searches the memory and gives the model a fenced record.

    Whose memory is decided by the arguments here, the run's context or `config["configurable"]`
    (`thread_id`; `resource_id` or `user_id`), never by the model. Without an owner only the
    thread is searched. What fails is logged, and the model is told that nothing was found.

    Args:
        memory: The memory; one for all users.
        name: The tool's name.
        description: What the model is told about it.
        thread_id: Fixes the thread.
        resource_id: Fixes the owner.
        **overrides: Any option of `RecallOptions`, on top of the memory's.

    Raises:
        InvalidOptionError: An option has a value that it cannot have, or is the model's to say.
    """
    for taken in ("since", "until"):
        if taken in overrides:
            raise InvalidOptionError(f"{taken} is an argument of the tool, which the model gives")
    search = _Search(memory, name, Ids(thread_id, resource_id), overrides)
    return StructuredTool(
        name=name,
        description=description,
        args_schema=RecallArguments,
        func=search.run,
        coroutine=search.arun,
        handle_validation_error=_explained,
    )


class _Search:
    """What the tool does."""

    def __init__(
        self, memory: SemanticRecall, name: str, fixed: Ids, overrides: RecallOverrides
    ) -> None:
        self._memory = memory
        self._name = name
        self._fixed = fixed
        self._overrides = overrides
        self._scope = memory.options.replace(**overrides).scope

    def run(self, config: RunnableConfig, **arguments: Any) -> str:  # noqa: ANN401 - the schema's
        asked, ids = RecallArguments(**arguments), self._ids(config)
        options = self._options(ids, asked)
        if options is None:
            return UNAVAILABLE
        recall = self._memory.recall_for_turn(
            asked.query, thread_id=ids.thread_id, resource_id=ids.resource_id, **options
        )
        return recall.block(include="all") or NOTHING

    async def arun(self, config: RunnableConfig, **arguments: Any) -> str:  # noqa: ANN401
        asked, ids = RecallArguments(**arguments), self._ids(config)
        options = self._options(ids, asked)
        if options is None:
            return UNAVAILABLE
        recall = await self._memory.arecall_for_turn(
            asked.query, thread_id=ids.thread_id, resource_id=ids.resource_id, **options
        )
        return recall.block(include="all") or NOTHING

    def _ids(self, config: RunnableConfig) -> Ids:
        configurable = config.get("configurable", {})
        # Absent outside of LangGraph.
        context = getattr(configurable.get(_RUNTIME), "context", None)
        try:
            return resolve(
                configurable,
                context,
                thread_id=self._fixed.thread_id,
                resource_id=self._fixed.resource_id,
            )
        except InvalidIdError as error:
            self._memory.settings.logger.warning("%s: memory is not used: %s", self._name, error)
            return Ids()

    def _options(self, ids: Ids, asked: RecallArguments) -> RecallOverrides | None:
        scope = ids.scope("thread" if asked.conversations == "this" else self._scope)
        if scope is None:
            self._memory.settings.logger.warning("%s: no thread or owner was given", self._name)
            return None
        merged: RecallOverrides = {**self._overrides, "scope": scope}
        if asked.since is not None:
            merged["since"] = asked.since
        if asked.until is not None:
            merged["until"] = asked.until
        return merged


def _explained(error: ValidationError | Any) -> str:  # noqa: ANN401 - pydantic v1 errors too
    return f"The arguments are wrong: {error}"

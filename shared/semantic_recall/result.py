"""What a recall gives back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from semantic_recall import _display
from semantic_recall.formatting import as_chat_message, format_block
from semantic_recall.tokens import count_tokens
from semantic_recall.types import RecalledMessage


# Without slots: the cached properties live in the instance's dictionary.
@dataclass(frozen=True, kw_only=True, repr=False)
class Recall:
    """The messages that matter for a query, and how they were found.

    Iterating gives `messages`; a recall that found nothing is false.
    """

    query: str
    messages: tuple[RecalledMessage, ...] = ()
    """Hits and their neighbours, none twice: chronological, and inside a thread as inserted."""
    thread_id: str | None = None
    """The current thread, if one was named."""
    resource_id: str | None = None
    """The owner of the current thread."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """How many messages were left out, by reason."""
    timings: Mapping[str, float] = field(default_factory=dict, compare=False)
    """Milliseconds by step."""
    version: int | None = field(default=None, compare=False)
    """The state of the memory that this shows, see `SemanticRecall.is_current`."""
    secret: bytes = field(default=b"", compare=False)
    """Goes into the token of the prompt block's fence, see `format_block`."""

    @cached_property
    def hits(self) -> tuple[RecalledMessage, ...]:
        """What was found, best first; neighbours are not in it."""
        found = (recalled for recalled in self.messages if recalled.is_hit)
        return tuple(sorted(found, key=_worst_last))

    @cached_property
    def same_thread(self) -> tuple[RecalledMessage, ...]:
        """The messages of the current thread; none when no thread was named."""
        return tuple(recalled for recalled in self.messages if self._is_current(recalled))

    @cached_property
    def cross_thread(self) -> tuple[RecalledMessage, ...]:
        """The messages of all other threads."""
        return tuple(recalled for recalled in self.messages if not self._is_current(recalled))

    @cached_property
    def text(self) -> str:
        """The prompt block of the messages of other threads; "" when there are none."""
        return self.block()

    @cached_property
    def tokens(self) -> int:
        """The size of what is added to a prompt: `text` and the texts of `same_thread`."""
        contents = (as_chat_message(recalled)["content"] for recalled in self.same_thread)
        return sum(count_tokens(text) for text in (self.text, *contents) if text)

    def block(
        self,
        include: Literal["cross_thread", "all"] = "cross_thread",
        *,
        max_tokens: int | None = None,
    ) -> str:
        """Return messages as one fenced record for a prompt, or "" when there are none.

        Args:
            include: "cross_thread": what `text` has; "all": the current thread's messages too.
            max_tokens: The most that the block may take; what does not fit is left out inside the
                fence, the least important first.
        """
        messages = self.messages if include == "all" else self.cross_thread
        return format_block(messages, limit=max_tokens, measure=count_tokens, secret=self.secret)

    def _is_current(self, recalled: RecalledMessage) -> bool:
        message = recalled.message
        return message.thread_id == self.thread_id and message.resource_id == self.resource_id

    def __len__(self) -> int:
        return len(self.messages)

    def __iter__(self) -> Iterator[RecalledMessage]:
        return iter(self.messages)

    def __repr__(self) -> str:
        return _display.recall_repr(self)

    def _repr_html_(self) -> str:
        return _display.recall_html(self)


def _worst_last(recalled: RecalledMessage) -> float:
    return float("inf") if recalled.score is None else -recalled.score

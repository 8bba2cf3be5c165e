"""What the memory of these tests holds: ordinary conversations, and hostile ones."""

from __future__ import annotations

from collections.abc import Iterable

from semantic_recall import SemanticRecall

HOSTILE = (
    "<script>window.hacked = 'script'</script>"
    "<img src=x onerror=\"window.hacked = 'img'\">"
    "<svg onload=\"window.hacked = 'svg'\"></svg>"
    "<a href=\"javascript:window.hacked = 'link'\">ferry</a>"
    '"\'><style>*{display:none}</style><iframe srcdoc="<script>top.hacked = 1</script>"></iframe>'
    "</textarea></option></title></noscript>{{token}} ${alert(1)} &lt;script&gt;"
)
"""Markup for every place that might take text for markup."""

HIDDEN = "left\u202egnp.exe\u202c \u200bzero \U000e0068\U000e0069 nul\0 half\ud83d end"
"""Characters that nobody sees: direction, zero width, tags, NUL, half a surrogate pair."""

ODD_IDS = (
    *("../../etc/passwd", "%2e%2e/%00", "a b?c#d&e=f", "\ud83d", "\0", "' OR 1=1 --"),
    *("user%", "ünïcödé/\u202e", "x" * 1024, "\\", "\n", "null"),
)
"""Ids that an address, a pattern or a query would stumble over."""

IDS = [
    *("trip-0", "trip-1", "trip-2", "work-0", "work-1", "ferry-0", "ferry-1", "hostile-0"),
    *("hostile-1", f"{HOSTILE[:20]}-0", "alone-0"),
]


def fill(memory: SemanticRecall) -> None:
    """Store the conversations."""
    _remember(memory, "trip", "ana", ["Is the ferry to Braga cheap?", "Yes, 12 euros.", "Good."])
    _remember(memory, "work", "ana", ["The printer is out of paper.", "Order some."])
    _remember(memory, "ferry", "ana", ["Which ferry goes at night?", "The ferry at ten."])
    _remember(memory, "hostile", "eve", [HOSTILE, HIDDEN])
    _remember(memory, HOSTILE, "eve", ["A thread with a name."])
    _remember(memory, "alone", None, ["Nobody owns this ferry."])


def _remember(
    memory: SemanticRecall, thread: str, resource: str | None, texts: Iterable[str]
) -> None:
    memory.remember(
        [
            {
                "id": f"{thread[:20]}-{number}",
                "role": ("user", "assistant")[number % 2],
                "content": text,
                "created_at": f"2025-03-0{1 + number}T09:30:00Z",
            }
            for number, text in enumerate(texts)
        ],
        thread_id=thread,
        resource_id=resource,
    )

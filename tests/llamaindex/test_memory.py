"""SemanticRecallMemory by itself: what `get` puts into a prompt."""

from __future__ import annotations

import pytest
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole, TextBlock

from llamaindex_semantic_recall import SemanticRecallMemory
from semantic_recall import RecallOptions, SemanticRecall
from semantic_recall.tokens import count_tokens
from tests.llamaindex.conftest import QUESTION, CountingEmbedder, chats, contents
from tests.llamaindex.scripted import call, refuse_what_providers_refuse, shown


# -- get -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "given",
    [QUESTION, ChatMessage(QUESTION), ChatMessage(blocks=[TextBlock(text=QUESTION)])],
)
def test_report_4_input_may_be_text_or_a_message(
    memory: SemanticRecallMemory, given: str | ChatMessage
) -> None:
    assert "Mochi" in shown(memory.get(given))
    assert "Mochi" in shown(memory.get(input=given, initial_token_count=3, anything="else"))


async def test_all_three_call_shapes_find_the_same(past: SemanticRecall) -> None:
    found = []
    for thread_id, stored, input in (
        ("a", True, None),
        ("b", True, QUESTION),
        ("c", False, QUESTION),
    ):
        memory = SemanticRecallMemory(past, thread_id=thread_id, resource_id="anna")
        if stored:
            memory.put(ChatMessage(QUESTION))
        (system, *rest) = await memory.aget(input)
        assert contents(rest) == ([QUESTION] if stored else [])
        found.append(system.content)
        memory.reset()
    assert len(set(found)) == 1


def test_nothing_to_search_for_is_no_error(memory: SemanticRecallMemory) -> None:
    assert memory.get() == []
    assert memory.get("") == []
    assert memory.get("  ") == []
    memory.put(ChatMessage(role="user", blocks=[ImageBlock(url="https://example.org/a.png")]))
    (image,) = memory.get()
    assert image.blocks[0].block_type == "image"


def test_the_present_message_is_not_its_own_hit(recall: SemanticRecall) -> None:
    memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna")
    memory.put(ChatMessage("My cat is called Mochi"))
    assert contents(memory.get()) == ["My cat is called Mochi"]
    assert contents(memory.get("My cat is called Mochi")) == ["My cat is called Mochi"]


def test_a_repeated_question_is_a_new_turn(
    past: SemanticRecall, memory: SemanticRecallMemory
) -> None:
    """Context engines name the message before they store it, also when it is the same again."""
    first = memory.get(QUESTION)
    memory.put_messages(chats(QUESTION, "Mochi."))
    past.remember(
        {"role": "user", "content": "My cat is now called Ghost."},
        thread_id="meanwhile",
        resource_id="anna",
    )
    assert "Ghost" not in shown(first)
    assert "Ghost" in shown(memory.get(QUESTION))


def test_old_messages_of_the_thread_come_back_as_messages_before_the_history(
    recall: SemanticRecall,
) -> None:
    memory = SemanticRecallMemory(
        recall, thread_id="now", resource_id="anna", token_limit=200, options=RecallOptions(top_k=1)
    )
    memory.put_messages(chats("My cat is called Mochi {context_str}.", "What a nice name."))
    for i in range(20):
        memory.put_messages(chats(f"Let us talk about {i} {i} {i}.", f"Number {i}, very well."))
    memory.put(ChatMessage(QUESTION))
    found = memory.get()
    refuse_what_providers_refuse(found)
    assert contents(found)[:2] == ["My cat is called Mochi { context_str }.", "What a nice name."]
    assert contents(found)[-1] == QUESTION
    assert len(found) < 20
    assert len(memory.get_all()) == 43


def test_an_old_answer_alone_comes_in_the_block_so_that_the_user_begins(
    recall: SemanticRecall,
) -> None:
    options = RecallOptions(top_k=1, message_range=0, roles=["assistant"])
    memory = SemanticRecallMemory(
        recall, thread_id="now", resource_id="anna", token_limit=400, options=options
    )
    memory.put_messages(chats("Suggest a name.", "Call the cat Mochi."))
    for i in range(40):
        memory.put_messages(chats(f"Let us talk about {i} {i} {i}.", f"Number {i}, very well."))
    found = memory.get("Which name did you suggest for the cat? Call Mochi?")
    refuse_what_providers_refuse(found)
    assert found[0].role is MessageRole.SYSTEM
    assert "Call the cat Mochi." in shown(found)


def test_report_7_the_history_starts_with_the_user(recall: SemanticRecall) -> None:
    memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna")
    memory.put(ChatMessage(role="assistant", content="Hello, I am your assistant."))
    assert memory.get() == []
    memory.put_messages(chats("Hi.", "How can I help?"))
    found = memory.get()
    refuse_what_providers_refuse(found)
    assert contents(found)[-2:] == ["Hi.", "How can I help?"]


def test_report_8_system_messages_stay_in_front_and_are_never_recalled(
    recall: SemanticRecall, embedder: CountingEmbedder
) -> None:
    memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna", token_limit=500)
    memory.put(ChatMessage(role="system", content="You speak like a pirate."))
    for i in range(150):
        memory.put_messages(chats(f"Question {i} about pirates?", f"Arr, answer {i}."))
    found = memory.get()
    assert found[0].role is MessageRole.SYSTEM
    assert (found[0].content or "").startswith("You speak like a pirate.")
    assert sum(m.role is MessageRole.SYSTEM for m in found) == 1
    recall.flush()
    assert not any("speak like a pirate" in text for text in embedder.documents)
    other = SemanticRecallMemory(recall, thread_id="other", resource_id="anna")
    assert "speak like a pirate" not in shown(other.get("speak like a pirate"))


def test_empty_messages_are_kept_and_not_given_to_a_model(memory: SemanticRecallMemory) -> None:
    told = [ChatMessage("hello"), ChatMessage(role="assistant", blocks=[]), *chats(" ", "", "now")]
    memory.put_messages(told)
    assert memory.get_all() == told
    assert contents(memory.get())[-2:] == ["hello", "now"]


def test_the_block_joins_a_stored_system_message(past: SemanticRecall) -> None:
    memory = SemanticRecallMemory(past, thread_id="now", resource_id="anna")
    memory.put(ChatMessage(role="system", content="Be brief."))
    memory.put(ChatMessage(QUESTION))
    (system, user) = memory.get()
    assert (system.content or "").startswith("Be brief.\n")
    assert "Mochi" in (system.content or "")
    assert user.content == QUESTION
    assert memory.get_all()[0].content == "Be brief."


@pytest.mark.parametrize("place", ["blocks", "additional_kwargs"])
def test_report_6_tool_calls_count(recall: SemanticRecall, place: str) -> None:
    memory = SemanticRecallMemory(
        recall, thread_id="now", token_limit=1000, options=RecallOptions(top_k=0)
    )
    asking = call("add", "c1", text="many words " * 1000)
    if place == "additional_kwargs":
        calls = [{"id": "c1", "function": {"name": "add", "arguments": "many words " * 1000}}]
        asking = ChatMessage(role="assistant", additional_kwargs={"tool_calls": calls})
    result = ChatMessage(role="tool", content="3", additional_kwargs={"tool_call_id": "c1"})
    memory.put_messages([ChatMessage("big"), asking, result])
    memory.put_messages(chats("small", "answer", "now"))
    assert contents(memory.get()) == ["small", "answer", "now"]


@pytest.mark.parametrize("limit", [0, 1, 10, 60, 100, 150, 200, 300, 500, 1000, 5000])
@pytest.mark.parametrize("insert", ["system", "user"])
def test_report_5_no_limit_is_an_error_and_each_is_kept(
    past: SemanticRecall, limit: int, insert: str
) -> None:
    """Recall gives way first, then history; the last turn stays whatever it takes."""
    memory = SemanticRecallMemory(
        past, thread_id="now", resource_id="anna", token_limit=limit, insert=insert
    )
    for i in range(12):
        memory.put_messages(chats(f"Is {i} cats many? " * 3, f"I think that {i} is a number."))
    memory.put(ChatMessage(QUESTION))
    found = memory.get()
    refuse_what_providers_refuse(found)
    assert (found[-1].content or "").endswith(QUESTION)
    texts = [block.text for m in found for block in m.blocks if isinstance(block, TextBlock)]
    used = sum(count_tokens(text) for text in texts)
    assert used <= max(limit, count_tokens(QUESTION))
    assert ("Mochi" in shown(found)) == (limit >= 500)
    assert contents(memory.get(initial_token_count=10**9)) == [QUESTION]


def test_a_long_thread_is_read_as_far_as_it_fits(recall: SemanticRecall) -> None:
    memory = SemanticRecallMemory(recall, thread_id="now", resource_id="anna", token_limit=10**6)
    memory.put_messages(chats(*(f"message {i}" for i in range(301))))
    assert len(memory.get()) == 301

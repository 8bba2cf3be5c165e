import math
import pickle
from dataclasses import fields
from datetime import date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest

from semantic_recall.errors import InvalidOptionError
from semantic_recall.options import RecallOptions, RecallOverrides
from semantic_recall.types import MessageRange


def test_defaults_are_those_of_mastra() -> None:
    options = RecallOptions()
    assert (options.top_k, options.message_range) == (4, MessageRange(1, 1))
    assert (options.scope, options.threshold, options.ranking) == ("resource", None, "hybrid")


def test_overrides_have_the_names_and_types_of_the_options() -> None:
    types = {field.name: field.type for field in fields(RecallOptions)}
    overrides = {
        name: getattr(reference, "__forward_arg__", reference)
        for name, reference in RecallOverrides.__annotations__.items()
    }
    assert overrides == types


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (3, MessageRange(3, 3)),
        (0, MessageRange(0, 0)),
        ((2, 1), MessageRange(2, 1)),
        (MessageRange(0, 5), MessageRange(0, 5)),
    ],
)
def test_message_range_takes_every_form(given: Any, expected: MessageRange) -> None:
    assert RecallOptions(message_range=given).message_range == expected


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("top_k", "4", "whole number"),
        ("top_k", 4.0, "whole number"),
        ("top_k", True, "whole number"),
        ("top_k", None, "whole number"),
        ("message_range", -1, ">= 0"),
        ("message_range", (1, 2, 3), "before, after"),
        ("message_range", "1", "before, after"),
        ("message_range", 1.5, "before, after"),
        ("scope", "global", '"resource" or "thread"'),
        ("scope", None, '"resource" or "thread"'),
        ("ranking", ["dense"], '"hybrid" or "dense"'),
        ("threshold", math.nan, "-1 to 1"),
        ("threshold", math.inf, "-1 to 1"),
        ("threshold", 70, "-1 to 1"),
        ("threshold", "0.5", "-1 to 1"),
        ("threshold", [0.5], "-1 to 1"),
        ("max_tokens", 0.5, "whole number or None"),
        ("exclude_ids", None, "strings"),
        ("exclude_ids", [1], "non-empty strings"),
        ("exclude_ids", [["a"]], "strings"),
        ("roles", [""], "non-empty strings"),
        ("roles", 3, "strings"),
        ("since", "2024-01-01", "datetime"),
        ("until", date(2024, 1, 1), "datetime"),
        ("since", datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))), "UTC"),
        ("filter", [("a", 1)], "mapping"),
        ("filter", {1: "a"}, "mapping"),
        ("filter", {"age": {"$gt": 3}}, "no $ operators"),
        ("filter", {"$or": []}, "no $ operators"),
    ],
)
def test_wrong_values_are_refused_with_name_value_and_what_is_allowed(
    option: str, value: Any, allowed: str
) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        RecallOptions(**{option: value})
    message = str(caught.value)
    assert option in message
    assert allowed in message
    with pytest.raises(InvalidOptionError):
        RecallOptions().replace(**{option: value})


def test_the_refusal_shows_only_the_start_of_a_long_value() -> None:
    with pytest.raises(InvalidOptionError) as caught:
        RecallOptions(scope="x" * 10_000)  # type: ignore[arg-type]
    assert len(str(caught.value)) < 200


def test_nothing_is_a_valid_amount() -> None:
    assert RecallOptions(top_k=0, max_tokens=0).top_k == 0
    assert RecallOptions(top_k=-3, max_tokens=-1).max_tokens == -1


def test_numbers_of_numpy_are_numbers() -> None:
    options = RecallOptions(top_k=np.int64(3), threshold=np.float32(0.5))
    assert type(options.top_k) is int
    assert type(options.threshold) is float


def test_a_lone_string_is_one_id_and_one_role() -> None:
    options = RecallOptions(exclude_ids="m1", roles="user")
    assert options.exclude_ids == {"m1"}
    assert options.roles == {"user"}


def test_no_roles_is_not_every_role() -> None:
    assert RecallOptions(roles=[]).roles == frozenset()
    assert RecallOptions().roles is None


def test_times_are_kept_in_utc_and_naive_ones_taken_as_utc() -> None:
    plus_two = timezone(timedelta(hours=2))
    options = RecallOptions(
        since=datetime(2024, 1, 1), until=datetime(2024, 1, 2, 2, tzinfo=plus_two)
    )
    assert options.since == datetime(2024, 1, 1, tzinfo=timezone.utc)
    assert options.until == datetime(2024, 1, 2, tzinfo=timezone.utc)
    assert options.until.utcoffset() == timedelta(0)


def test_the_filter_is_a_copy() -> None:
    wanted: dict[str, Any] = {"project": ("a", "b")}
    options = RecallOptions(filter=wanted)
    wanted.clear()
    assert options.filter == {"project": ["a", "b"]}
    assert RecallOptions(filter={}).filter is None


def test_replace_changes_what_is_given_and_checks_it() -> None:
    options = RecallOptions(top_k=7, threshold=0.5)
    changed = options.replace(threshold=None, message_range=2)
    assert (changed.top_k, changed.threshold) == (7, None)
    assert changed.message_range == MessageRange(2, 2)
    assert options.threshold == 0.5
    assert options.replace() is options


def test_what_equals_a_value_that_was_taken_is_checked_all_the_same() -> None:
    """Options of equal calls are kept, and 1 equals True and 1.0."""
    options = RecallOptions()
    assert options.replace(top_k=1) is options.replace(top_k=1)
    for wrong in (True, 1.0):
        with pytest.raises(InvalidOptionError, match="top_k"):
            options.replace(top_k=wrong)  # type: ignore[arg-type]
    assert options.replace(threshold=1).threshold == options.replace(threshold=1.0).threshold == 1.0
    assert type(options.replace(threshold=1).threshold) is float


def test_replace_names_an_unknown_option_and_the_nearest_one() -> None:
    with pytest.raises(InvalidOptionError, match="'topk'; did you mean top_k"):
        RecallOptions().replace(topk=3)  # type: ignore[call-arg]
    with pytest.raises(InvalidOptionError, match="'zzz'; there are top_k, message_range"):
        RecallOptions().replace(zzz=3)  # type: ignore[call-arg]


def test_options_are_values() -> None:
    options = RecallOptions(exclude_ids=["b", "a"], filter={"a": 1}, since=datetime(2024, 1, 1))
    same = RecallOptions(exclude_ids=("a", "b"), filter={"a": 1}, since=datetime(2024, 1, 1))
    assert options == same
    assert hash(options) == hash(same)
    assert pickle.loads(pickle.dumps(options)) == options

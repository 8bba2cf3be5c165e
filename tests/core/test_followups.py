from __future__ import annotations

import time

import pytest

from semantic_recall.followups import is_follow_up


@pytest.mark.parametrize(
    "query",
    [
        "And the price?",
        "what about his brother?",
        "What about Wim?",
        "but where is Wim now",
        "when was that again?",
        "Where did she buy it?",
        "what do they charge there?",
        "Yes. How long did we wait?",
        "Haha, no idea. Who told them?",
        "how many people did he invite?",
        "Did she like it?",
        "那是什么时候的事？",
        "他后来去哪儿了？",
        "对啊，一共多少钱？",
        "到底是哪天开始？",
        "그때 얼마였어?",
        "응, 어디로 갔더라?",
        "얼마였지?",
        "거긴 언제 열어?",
    ],
)
def test_it_leaves_out_what_it_is_about(query: str) -> None:
    assert is_follow_up(query)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "   ",
        "?",
        "Porto",
        "Where did Maren buy it?",
        "Where did MAREN move after she was 30?",
        "What breed is our dog and where had she been before?",
        "Has he kicked the cigarette habit?",
        "Which wedding dates were there over time?",
        "Who was the physio that discharged me?",
        "No module named 'imghdr', what do I use in its place?",
        "What is its max_connections set to?",
        "How long did I tell you that a deploy took in the beginning?",
        "And which of the many people whom we met last summer wanted to come along?",
        "Where does it say so? " * 5,
        "我的公司做的是什么产品？",
        "在五月我买了一件连衣裙，它的颜色是？",
        "谁帮我修好了屋顶？",
        "那个年轻同事为何辞职，去了何处？",
        "卖花的那家店叫什么名字？",
        "우리 고양이 이름이 뭐였지?",
        "출시일은 언제로 바뀌었어?",
        "여행 얘기에 너는 뭐라고 했어?",
        "내가 2월에 일주일에 몇 시간 일했다고 했지?",
        "其他的花瓶在哪里？",
        "他の料理は何でしたか？",
        "Und wo hat sie ihn gekauft?",
    ],
)
def test_it_says_what_it_is_about(query: str) -> None:
    assert not is_follow_up(query)


def test_a_long_query_takes_no_time() -> None:
    begin = time.perf_counter()
    assert not is_follow_up("yes, " * 2_000_000)
    assert not is_follow_up("그" * 10_000_000)
    assert time.perf_counter() - begin < 1

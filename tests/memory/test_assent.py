"""Telling whether words only ask, and whether they expressly accept."""

import pytest

from memory.assent import accepts, names_something_else, only_asks


@pytest.mark.parametrize(
    "words",
    [
        "Should we use tabs?",
        "Hi. Which do you prefer?",
        "should we use tabs",
        "If I use tabs, will it break?",
        "I don't know, what do you think?",
        "```\nI use tabs.\n```\nIs this right?",
        "> I use tabs.\nIs this right?",
        "Can you use tabs from now on?",
        "我们要不要用制表符",
        "我应该用空格吗？",
        "怎么安装",
        "你觉得哪个好？谢谢",
        "请问，这样行吗?",
        "Tell me whether I should use tabs",
        "Please tell me which of them I should use.",
        "I wonder whether I should use tabs.",
        "Hi, should I use tabs",
        "Which is better, tabs or spaces",
        "告诉我是否该用制表符",
        "我想知道该用哪个",
        "我该用空格吗",
        "我们用空格好吗",
        "我用空格行不行",
        "Tabs or spaces",
        "用空格还是制表符",
        "My question: should we use tabs?",
        "I was thinking, should we use tabs?",
        "I have a question, should we use tabs or spaces?",
        "We have two options: should we use tabs?",
        "One more thing. Should we use tabs?",
        "Anyway, should we use tabs",
        "我有个问题，我们该用tabs吗？",
        "我在想，我们该用tabs吗？",
    ],
)
def test_words_that_only_ask(words):
    assert only_asks(words)
    assert not accepts(words)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "I prefer tabs.",
        "I prefer tabs, ok?",
        "I prefer tabs, should I change?",
        "Is it? I use tabs.",
        "When I code I prefer tabs",
        "What I want is tabs.",
        "Use tabs. OK?",
        "我喜欢用空格，好吗？",
        "我喜欢用空格，好吗",
        "我还是用空格",
        "用制表符吧",
        "以后都用中文回答，可以吗？",
        "Tell me when you delete something.",
        "Tell me whether it works, I use tabs.",
        "Let me know before you use tabs.",
    ],
)
def test_words_that_tell_something(words):
    assert not only_asks(words)


@pytest.mark.parametrize(
    "words",
    [
        "yes",
        "Yes, please.",
        "OK, let's go with that.",
        "Sounds good!",
        "no problem, go ahead",
        "That works for me.",
        "Perfect. Next: write the tests.",
        "Not bad, I accept.",
        "好的",
        "好，就这么办",
        "同意。",
        "没问题",
        "可以的，谢谢",
        "Yes, use PostgreSQL.",
        "Yes please do that. Thanks for the help.",
        "是的，用空格",
        "Hi. Agreed.",
    ],
)
def test_words_that_accept(words):
    assert accepts(words)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "No thanks",
        "yes?",
        "Sounds good, but use spaces",
        "ok if you use spaces",
        "I don't agree",
        "I can do it tomorrow maybe",
        "Right now I'm tired",
        "good morning",
        "thanks",
        "continue",
        "> Yes.",
        "不行",
        "我不同意",
        "好像不对",
        "你好",
        "OK, I will think about it.",
        "Right, so tell me about cats.",
        "Sure. I hate it.",
        "I am tired. Yes.",
        "OK, write me a poem.",
        "Yes I hate it",
        "Yes. What did I just agree to?",
        "Let's keep looking.",
        "行，我考虑一下",
        "好的，再给我看看其他方案",
        "好的那就再想一想",
        "Let's do the opposite",
        "Agreed that it is terrible",
        "Agreed in part",
        "Sounds great for Bob",
        "Yeah right",
        "就这样算了",
    ],
)
def test_words_that_do_not_accept(words):
    assert not accepts(words)


@pytest.mark.parametrize(
    "words",
    [
        "Let's go with MySQL.",
        "Let's do MySQL.",
        "Let's use MySQL.",
        "Yes, use MySQL.",
        "就用MySQL吧",
        "就选第二个",
        "I agree with Bob.",
    ],
)
def test_accepting_words_that_name_something_else_are_known(words):
    assert accepts(words)
    assert names_something_else(words, "I propose PostgreSQL for the orders. 我建议用 PostgreSQL。")


@pytest.mark.parametrize(
    "words",
    [
        "Let's go with PostgreSQL.",
        "Yes, use postgresql for the orders.",
        "Let's go with your plan.",
        "I agree with you.",
        "Let's use it.",
        "Yes.",
        "Agreed. Now use pytest for the tests.",
        "就用PostgreSQL吧",
        "就用这个方案吧",
        "就按你说的",
        "同意",
    ],
)
def test_what_points_back_or_names_what_was_proposed_names_nothing_else(words):
    assert not names_something_else(words, "I propose PostgreSQL for the orders. 我建议用 PostgreSQL。")

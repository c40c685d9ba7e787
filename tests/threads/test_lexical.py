"""Ranking by words: forms of a word are one word, scripts without spaces are compared by pairs."""

import pytest

from threads.lexical import Corpus, bm25, query_tokens, rarity, tokens


def test_forms_of_a_word_are_one_token():
    assert tokens("Painting PAINTED paints") == ["paint"] * 3


def test_a_script_without_spaces_is_compared_by_pairs():
    assert tokens("去长沙 go猫") == ["去长", "长沙", "go", "猫"]


def test_names_with_signs_are_taken_apart():
    assert tokens("deploy_prod /etc/nginx.conf") == ["deploy", "prod", "etc", "nginx", "conf"]


def test_other_scripts_keep_their_words():
    assert tokens("Привет МИР") == ["привет", "мир"]


def test_words_of_grammar_count_only_where_there_is_nothing_else():
    assert query_tokens("What did the painters do?") == ["painter"]
    assert query_tokens("to be or not to be") == ["to", "be", "or", "not"]


def test_only_texts_that_share_a_word_have_a_score():
    scores = bm25("red painting", {1: "a red house", 2: "he paints", 3: "nothing"})
    assert set(scores) == {1, 2}
    assert all(score > 0 for score in scores.values())


def test_rare_words_weigh_more_and_long_texts_less():
    texts = dict.fromkeys(range(9), "common") | {10: "rare common", 11: "common " + "filling " * 50}
    scores = bm25("common rare", texts)
    assert max(scores, key=scores.__getitem__) == 10
    assert min(scores, key=scores.__getitem__) == 11


def test_a_repeated_word_weighs_more_but_never_much():
    once, often = bm25("word", {1: "word x x x x x", 2: "word word word word word word", 3: "other"}).values()
    assert once < often < once * 2.5


def test_the_population_makes_words_of_a_selection_rare():
    texts = {1: "vault"}
    assert bm25("vault", texts, population=1_000)[1] > bm25("vault", texts)[1]
    assert rarity(10, 10) > 0


def test_a_corpus_answers_as_one_query_does():
    texts = {1: "He painted the lake", 2: "lakes and boats", 3: "长沙的湖"}
    corpus = Corpus(texts.items())
    for query in ("painting lakes", "长沙", "boat", "nothing at all"):
        assert corpus.scores(query) == pytest.approx(bm25(query, texts))


def test_no_text_and_no_word_are_no_error():
    assert bm25("word", {}) == {}
    assert bm25("", {1: "word"}) == {}
    assert bm25("?!", {1: "", 2: "?!"}) == {}

"""How words are cut for embedding: no word is lost, and no sign is torn apart."""

import regex
from hypothesis import given
from hypothesis import strategies as st

from maxclaw.text import boundary_before
from memory import chunks

PIECES = st.sampled_from(
    ["word ", "A sentence. ", "句子。", "👩‍👩‍👧", "e\u0301", "\n\n", "x" * 70, " ", "\r\n", "漢字"]
)
TEXTS = st.lists(PIECES, max_size=80).map("".join)


def test_chunks_hold_every_word_once_and_are_cut_after_sentences():
    text = " ".join(f"This is sentence {number} of a long story." for number in range(200))
    spans = chunks.spans(text, 1_000)
    assert all(text[begin:stop].endswith(".") for begin, stop in spans)
    assert " ".join(text[begin:stop] for begin, stop in spans) == text


def test_text_without_sentences_is_cut_between_words():
    spans = chunks.spans("word " * 500, 1_000)
    assert all(("word " * 500)[begin:stop].endswith("word") for begin, stop in spans)


@given(text=TEXTS, most=st.sampled_from([20, 50, 200]))
def test_no_sign_that_is_not_blank_is_left_out_or_there_twice_or_torn(text, most):
    spans = chunks.spans(text, most)
    assert regex.sub(r"\s", "", "".join(text[begin:stop] for begin, stop in spans)) == regex.sub(r"\s", "", text)
    assert all(0 < stop - begin <= most for begin, stop in spans)
    assert all(boundary_before(text, begin) == begin for begin, _stop in spans)


def test_keys_and_passwords_are_not_sent_to_a_model():
    words = chunks.words_to_embed("use sk-ant-api03-abcdefghijklmnop and postgres://me:hunter22@host/db")
    assert "abcdefghijklmnop" not in words and "hunter22" not in words

"""What was said is embedded in the background: once, whole, and nothing of what is gone."""

import itertools
import threading
from importlib import import_module

import pytest
from django.db import connection, transaction

from accounts import erasing
from llm import embedding
from llm.catalog_entries import ALL
from maxclaw import clock
from memory import embedding_work
from memory.models import EmbeddedThread, MessageChunk
from tests.threads.records import call_tool, exchange, give_result, say, thread_of
from threads import transcript
from threads.copying import fork, rewind
from threads.models import Message, Thread

pytestmark = pytest.mark.django_db


def embedded(thread):
    """(message id, offset) of the chunks of a thread, in order."""
    rows = MessageChunk.objects.filter(thread=thread).order_by("message_id", "offset")
    return list(rows.values_list("message_id", "offset"))


def test_words_and_answers_are_embedded_with_the_name_of_the_model(alice):
    thread = thread_of(alice)
    said, answered = exchange(thread, "Where is the key?", "Under the mat.")
    assert embedding_work.embed_some(thread.pk) == 2
    assert embedded(thread) == [(said.pk, 0), (answered.pk, 0)]
    chunk = MessageChunk.objects.get(message=said)
    assert (chunk.model, chunk.length, chunk.owner_id) == (embedding.configured().name, 17, alice.pk)
    assert len(chunk.embedding) == 512


def test_looking_again_embeds_nothing_twice(alice):
    thread = thread_of(alice)
    exchange(thread)
    embedding_work.embed_some(thread.pk)
    assert embedding_work.embed_some(thread.pk) == 0
    exchange(thread, "more", "words")
    assert embedding_work.embed_some(thread.pk) == 2
    assert embedding_work.pending_threads(embedding.configured()) == []


def test_of_a_long_result_head_and_tail_are_embedded(alice):
    thread = thread_of(alice)
    call_tool(thread)
    words = "first words. " + "filling " * 20_000 + "last words."
    result = give_result(thread, text=words)
    embedding_work.embed_some(thread.pk)
    spans = [
        (chunk.offset, chunk.offset + chunk.length)
        for chunk in MessageChunk.objects.filter(message=result).order_by("offset")
    ]
    assert len(spans) == 2
    assert spans[0][0] == 0 and spans[1][1] == len(words)
    assert all(stop - begin <= chunks_max() for begin, stop in spans)


def chunks_max():
    return embedding.configured().max_chars


def test_a_result_hardly_longer_than_both_ends_is_embedded_without_overlap(alice):
    thread = thread_of(alice)
    call_tool(thread)
    words = "".join(f"sentence number {number}. " for number in range(70)).strip()
    assert 1_200 < len(words) < 2_000
    result = give_result(thread, text=words)
    embedding_work.embed_some(thread.pk)
    found = list(MessageChunk.objects.filter(message=result).order_by("offset").values_list("offset", "length"))
    assert found[0][0] == 0 and sum(found[-1]) == len(words)
    assert all(sum(before) <= after[0] for before, after in itertools.pairwise(found))


def test_what_no_model_sees_is_not_embedded(alice):
    thread = thread_of(alice)
    say(thread, Message.Role.EVENT, "note of the framework", meta={"source": "framework"})
    say(thread, Message.Role.EVENT, "an interrupt", meta={"source": "kernel/overflow"})
    say(thread, Message.Role.USER, "hidden words", model_visible=False)
    say(thread, Message.Role.USER, "   ")
    task = say(thread, Message.Role.EVENT, "result of a task", meta={"source": "task/abc"})
    embedding_work.embed_some(thread.pk)
    assert embedded(thread) == [(task.pk, 0)]


def test_what_was_rewound_before_is_not_embedded(alice):
    thread = thread_of(alice)
    first, answer = exchange(thread, "stays", "stays too")
    exchange(thread, "goes", "goes too")
    rewind(thread, answer, acting_user=alice)
    embedding_work.embed_some(thread.pk)
    assert embedded(thread) == [(first.pk, 0), (answer.pk, 0)]


def test_copies_take_the_vectors_of_their_originals(alice):
    thread = thread_of(alice)
    _said, answer = exchange(thread, "a question", "an answer")
    embedding_work.embed_some(thread.pk)
    copy = fork(alice, thread, answer, acting_user=alice)

    class Refusing:
        name, max_chars, categories = embedding.configured().name, chunks_max(), ALL

        def embed(self, texts):
            assert not texts
            return embedding.configured().embed(texts)

    assert embedding_work.embed_some(copy.pk, Refusing()) == 2
    assert len(embedded(copy)) == 2


def test_an_answer_that_is_still_coming_is_embedded_when_it_has_come(alice):
    thread = thread_of(alice)
    said = say(thread, Message.Role.USER, "Tell me")
    with transaction.atomic():
        locked = transcript.lock_thread(thread.pk)
        coming = transcript.append(locked, transcript.live_generation(locked), Message.Role.ASSISTANT)
    token = "12345678-1234-5678-1234-567812345678"
    Thread.objects.filter(pk=thread.pk).update(state="running", lease_token=token, lease_until=clock.now())
    embedding_work.embed_some(thread.pk)
    assert embedded(thread) == [(said.pk, 0)]
    transcript.finish_answer(coming, text="Here it is", wire='[{"type":"text","text":"Here it is"}]')
    Thread.objects.filter(pk=thread.pk).update(state="idle", lease_token=None, lease_until=None)
    embedding_work.embed_some(thread.pk)
    assert embedded(thread) == [(said.pk, 0), (coming.pk, 0)]


def test_a_thread_erased_while_it_is_embedded_leaves_nothing(alice):
    thread = thread_of(alice)
    exchange(thread)

    class Erasing:
        name, max_chars, categories = embedding.configured().name, chunks_max(), ALL

        def embed(self, texts):
            erasing.erase_thread(Thread.objects.get(pk=thread.pk))
            return embedding.configured().embed(texts)

    assert embedding_work.embed_some(thread.pk, Erasing()) == 0
    assert not MessageChunk.objects.exists()
    assert not EmbeddedThread.objects.exists()


def test_rows_rewound_while_they_are_embedded_leave_nothing(alice):
    thread = thread_of(alice)
    first, answer = exchange(thread, "stays", "stays too")
    exchange(thread, "goes", "goes too")

    class Rewinding:
        name, max_chars, categories = embedding.configured().name, chunks_max(), ALL

        def embed(self, texts):
            rewind(thread, answer, acting_user=alice)
            return embedding.configured().embed(texts)

    embedding_work.embed_some(thread.pk, Rewinding())
    assert embedded(thread) == [(first.pk, 0), (answer.pk, 0)]


def test_an_erased_thread_and_an_erased_person_leave_no_chunk(alice, bob):
    mine, mine_too, theirs = thread_of(alice), thread_of(alice), thread_of(bob)
    for thread in (mine, mine_too, theirs):
        exchange(thread)
        embedding_work.embed_some(thread.pk)
    erasing.erase_thread(mine)
    assert not MessageChunk.objects.filter(thread_id=mine.pk).exists()
    erasing.erase_user(alice)
    assert set(MessageChunk.objects.values_list("owner_id", flat=True)) == {bob.pk}
    assert set(EmbeddedThread.objects.values_list("owner_id", flat=True)) == {bob.pk}


def test_a_failing_backend_is_tried_again_later(alice):
    thread = thread_of(alice)
    exchange(thread)

    class Failing:
        name, max_chars, categories = embedding.configured().name, chunks_max(), ALL

        def embed(self, texts):
            raise embedding.EmbeddingError(embedding.ErrorKind.TRANSIENT, "no answer")

    assert embedding_work.embed_some(thread.pk, Failing()) == 0
    assert embedding_work.pending_threads(embedding.configured()) == [thread.pk]
    assert embedding_work.embed_some(thread.pk) == 2


def test_a_claim_that_ended_is_taken_over(alice):
    thread = thread_of(alice)
    exchange(thread)
    name = embedding.configured().name
    assert embedding_work._claim(thread.pk, name)
    assert embedding_work.embed_some(thread.pk) == 0
    assert embedding_work.pending_threads(embedding.configured()) == []
    assert embedding_work.pending_threads(embedding.configured(), claimed=True) == [thread.pk]
    EmbeddedThread.objects.update(claimed_until=clock.now())
    assert embedding_work.embed_some(thread.pk) == 2


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_once_embed_each_row_once(alice):
    threads = [thread_of(alice) for _number in range(3)]
    for thread in threads:
        for number in range(40):
            exchange(thread, f"question {number}", f"answer {number}")
    embedding.configured().embed(["loaded before the clock runs"])
    written, failed = [], []

    def work():
        try:
            written.append(embedding_work.catch_up())
        except Exception as error:
            failed.append(error)
        finally:
            connection.close()

    workers = [threading.Thread(target=work) for _number in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failed == []
    assert sum(written) == MessageChunk.objects.count() == 240
    assert all(len(embedded(thread)) == 80 for thread in threads)


def test_what_was_said_beside_a_look_back_before_that_was_found_is_found_after_all(alice):
    """Rows that an older rule marked are put right by migrations, whose statements these are."""
    thread = thread_of(alice)
    look = {"type": "tool_use", "id": "toolu_1", "name": "search_memory", "input": {"query": "the login"}}
    said = "The port is 5433. Let me look."
    saying = say(thread, "assistant", said, blocks=[transcript.text_block(said), look], model="emulator-main")
    alone = say(thread, "assistant", "", blocks=[look | {"id": "toolu_2"}], model="emulator-main")
    later = say(thread, "user", "And then?")
    marked = {"looks_back": True}
    Message.objects.filter(pk__in=(saying.pk, alone.pk)).update(meta=marked)
    embedding_work.embed_some(thread.pk)
    assert embedded(thread) == [(later.pk, 0)]
    with connection.cursor() as cursor:
        for name in (
            "threads.migrations.0025_what_was_said_beside_a_look_back",
            "memory.migrations.0018_look_again_at_what_was_said_beside_a_look_back",
        ):
            cursor.execute(import_module(name).FORWARD)
    assert [Message.objects.get(pk=row.pk).meta for row in (saying, alone)] == [{}, marked]
    assert EmbeddedThread.objects.get().through_id == saying.pk - 1
    embedding_work.embed_some(thread.pk)
    assert embedded(thread) == [(saying.pk, 0), (later.pk, 0)]

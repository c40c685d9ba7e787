"""Another embedding model: the old vectors answer until the new ones are whole, then they go."""

import io

import pytest
from asgiref.sync import async_to_sync
from django.core.management import CommandError, call_command

from agent import health
from llm import embedding
from llm.embedding_local import NAME
from maxclaw import doctor
from memory import embedding_work, meaning_range, query_vectors, reembedding, searching
from memory.models import EmbeddedThread, MessageChunk
from tests.llm.test_embedding import Server
from tests.threads.records import exchange, thread_of
from threads.visibility import Level, Viewer

pytestmark = pytest.mark.django_db


@pytest.fixture
def other_model(settings):
    """A way to switch to a server's model, and back."""
    settings.MODEL_RETRY_BASE_SECONDS = 0.01
    server = Server()

    def switch():
        settings.EMBEDDING_URL, settings.EMBEDDING_MODEL = server.url, "embed-small"
        settings.EMBEDDING_RECALL_THRESHOLD, settings.EMBEDDING_BRIEFING_THRESHOLD = 0.6, 0.4
        return server

    yield switch
    server.server.shutdown()
    server.server.server_close()


def models():
    return set(MessageChunk.objects.values_list("model", flat=True))


def test_old_vectors_answer_until_every_conversation_is_embedded_anew(alice, other_model):
    threads = [thread_of(alice) for _number in range(2)]
    for thread in threads:
        exchange(thread, "My bicycle is green.", "A fine colour.")
        embedding_work.embed_some(thread.pk)
    other_model()
    viewer = Viewer.of_thread(threads[0])
    assert meaning_range.reach(viewer, None).model == NAME
    assert query_vectors.compared(["bicycle"], NAME, "").vectors.shape == (1, 512)
    embedding_work.embed_some(threads[0].pk)
    assert models() == {NAME, "embed-small"}
    assert meaning_range.reach(viewer, threads[0].channel).model == "embed-small"
    assert meaning_range.reach(viewer, threads[1].channel).model == NAME
    assert meaning_range.reach(viewer, None).model == NAME
    told = []
    end = reembedding.reembed(told.append)
    assert end.is_done and told[0].old_chunks == 4
    assert models() == {"embed-small"}
    assert set(EmbeddedThread.objects.values_list("model", flat=True)) == {"embed-small"}
    assert meaning_range.reach(viewer, None).model == "embed-small"


def test_what_is_done_stays_when_the_server_gives_up_and_the_command_goes_on_from_there(alice, other_model):
    threads = [thread_of(alice) for _number in range(3)]
    for thread in threads:
        exchange(thread)
        embedding_work.embed_some(thread.pk)
    server = other_model()
    # It answers the question whether it is there, embeds one conversation, and then fails.
    proper = [(200, {}, Server.proper({"input": ["x"] * count, "model": "embed-small"})) for count in (1, 2)]
    server.answers = [*proper, *[(503, {}, "gone")] * 20]
    with pytest.raises(CommandError, match="2 conversations are not embedded yet"):
        call_command("reembed", stdout=io.StringIO())
    assert MessageChunk.objects.filter(model="embed-small").count() == 2
    assert MessageChunk.objects.filter(model=NAME).count() == 6
    server.answers, server.requests = [], []
    call_command("reembed", stdout=(said := io.StringIO()))
    assert sum(len(body["input"]) for _path, _key, body in server.requests) == 1 + 4
    assert "embed-small: 6 chunks embedded, 0 conversations to look at" in said.getvalue()
    assert models() == {"embed-small"}


@pytest.mark.django_db(transaction=True)
def test_a_server_gets_no_word_of_a_category_that_it_may_not_read(alice, other_model, settings):
    server = other_model()
    plain, labelled = thread_of(alice), thread_of(alice, category="work")
    for thread in (plain, labelled):
        exchange(thread, "My bicycle is green.", "A fine colour.")

    def asked(viewer, thread):
        return async_to_sync(searching.search)(viewer, "bicycle", thread.channel).text

    assert embedding_work.catch_up() == 2
    assert embedding_work.embed_some(labelled.pk) == 0
    assert reembedding.progress().is_done
    server.requests.clear()
    # Neither what was said there nor what is asked there, whoever asks.
    for viewer in (Viewer.of_thread(labelled), Viewer(alice.pk, None, Level(category="work"))):
        assert searching.BY_WORDS_ALONE in asked(viewer, labelled)
        assert searching.BY_WORDS_ALONE in asked(viewer, plain)
        assert "My bicycle is green." in asked(viewer, labelled)
    assert not server.requests
    assert searching.BY_WORDS_ALONE not in asked(Viewer.of_thread(plain), plain)
    assert "it may not read personal, work, confidential" in doctor.embeddings().text
    assert health.work().unread_categories == "personal, work, confidential"

    settings.EMBEDDING_READS = ["work"]
    assert embedding_work.catch_up() == 2
    assert searching.BY_WORDS_ALONE not in asked(Viewer.of_thread(labelled), labelled)
    settings.EMBEDDING_READS = ["all"]
    assert health.work().unread_categories == ""
    settings.EMBEDDING_READS = ["wrok"]
    assert 'names "wrok"' in doctor.embeddings().text


def test_the_state_can_be_asked_for_without_doing_anything(alice, other_model):
    thread = thread_of(alice)
    exchange(thread)
    embedding_work.embed_some(thread.pk)
    other_model()
    call_command("reembed", status=True, stdout=(said := io.StringIO()))
    assert said.getvalue().strip() == (
        "embed-small: 0 chunks embedded, 1 conversations to look at; 2 of other models still answer"
    )
    assert models() == {NAME}


def test_a_server_that_does_not_answer_stops_the_command_with_a_sentence(alice, other_model):
    server = other_model()
    server.answers = [(401, {}, "no")]
    with pytest.raises(CommandError, match="MAXCLAW_EMBEDDING_API_KEY"):
        call_command("reembed", stdout=io.StringIO())


@pytest.mark.django_db(transaction=True)
def test_a_search_goes_by_words_alone_while_the_server_fails(alice, other_model):
    server = other_model()
    thread = thread_of(alice)
    exchange(thread, "My bicycles are green and fast.", "A fine colour.")
    embedding_work.embed_some(thread.pk)
    assert models() == {"embed-small"} and embedding.configured().name == "embed-small"
    server.answers = [(503, {}, "gone")] * 20
    found = async_to_sync(searching.search)(Viewer.of_thread(thread), "bicycle", thread.channel)
    assert searching.BY_WORDS_ALONE in found.text
    assert "bicycles are green" in found.text

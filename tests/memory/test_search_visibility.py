"""Nothing invisible is ever found, whatever was isolated, deleted and brought back, and whoever else has the words."""

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import User
from agent import conversations as lists
from memory import searching
from tests.memory.test_search import by_meaning, embed, ids_in
from tests.threads.conversation import Conversation
from tests.threads.test_literal_search_properties import shown_by_hand
from tests.threads.test_verification import STEP, take_step
from threads import lifecycle
from threads.history import NOT_FOUND, HistoryRefused
from threads.literal_search import literal_search, literal_search_everywhere
from threads.models import Message
from threads.visibility import Level, Viewer

CHANGE = st.fixed_dictionaries(
    {
        "action": st.sampled_from(["isolate", "isolate", "label", "delete", "delete", "undelete", "begin"]),
        "who": st.integers(0, 5),
    }
)
# What a branch was made of goes, and the branch stays.
GONE = (False, {"action": "delete", "who": 0})


@pytest.mark.django_db
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    steps=st.lists(st.tuples(st.booleans(), STEP | CHANGE | CHANGE), min_size=4, max_size=14),
    long=st.sampled_from([0, 300]),
    source_goes=st.booleans(),
)
def test_nothing_invisible_is_found_whatever_became_of_the_conversations(db, steps, long, source_goes):
    class Undone(Exception):
        pass

    said = {"action": "say", "who": 0, "number": 0, "text": "", "answer": [{"type": "text", "text": "needle"}]}
    said |= {"inputs": [], "model": "emulator-main"}
    forked = said | {"action": "fork", "number": 1}
    with pytest.raises(Undone), transaction.atomic():
        people = [User.objects.create(username=name) for name in ("somebody", "another")]
        held = {person.pk: [Conversation(person)] for person in people}
        for second, step in [(False, said), (True, said), (False, forked), *steps, *([GONE] if source_goes else [])]:
            person = people[second]
            if "text" in step:
                step = step | {"text": f"needle {step['text']}{' padding' * long}"}
            act(person, held[person.pk], step)
        made = [conversation for each in held.values() for conversation in each]
        for conversation in made:
            conversation.thread.refresh_from_db()
        embed(*(conversation.thread for conversation in made if conversation.thread.deleted is None))
        viewers = [Viewer.of_thread(conversation.thread) for conversation in made]
        for viewer in [*viewers, *(Viewer(person.pk, None, Level()) for person in people)]:
            check_what_is_seen(viewer, [conversation.thread for conversation in made])
        raise Undone


def act(person, conversations, step):
    standing = [conversation for conversation in conversations if conversation.thread.deleted is None]
    if step["action"] == "begin" or not standing:
        conversations.append(Conversation(person))
    elif "text" in step:
        count = len(standing)
        take_step(standing, step)
        conversations += standing[count:]
    else:
        change(person, standing[step["who"] % len(standing)].thread, step["action"])
    for conversation in conversations:
        conversation.thread.refresh_from_db()


def change(person, thread, action):
    match action:
        case "isolate":
            lifecycle.narrow(thread, acting_user=person, scope="isolated")
        case "label" if not thread.category:
            lifecycle.narrow(thread, acting_user=person, category="work")
        case "delete":
            lists.delete(person, thread.channel)
        case "undelete":
            gone = lists.deleted_threads(person).order_by("pk").first()
            if gone is not None:
                lists.undelete(person, gone.channel)


def may_see(viewer, thread):
    """The rule in plain words: one's own, there, from its own island, and of a category that the viewer has too."""
    on_island = thread.island_id is None or thread.island_id == viewer.level.island_id
    return (
        thread.owner_id == viewer.owner_id
        and thread.deleted is None
        and on_island
        and thread.category in ("", viewer.level.category)
    )


def check_what_is_seen(viewer, threads):
    seen = [thread for thread in threads if may_see(viewer, thread)]
    everywhere = set(Message.objects.filter(thread__in=seen).values_list("pk", flat=True))
    for thread in threads:
        if thread not in seen:
            with pytest.raises(HistoryRefused) as refused:
                literal_search(viewer, thread.channel, "needle")
            assert "needle" not in str(refused.value)
            of_ones_own = thread.owner_id == viewer.owner_id and thread.deleted is None
            assert (str(refused.value) == NOT_FOUND) is not of_ones_own
            continue
        literal = literal_search(viewer, thread.channel, "needle")
        text = searching.result_text(
            "needle", by_meaning(viewer, "needle", thread.channel), None, literal, thread.channel
        )
        assert ids_in(text) <= everywhere
        assert bool(literal.hits) == bool(shown_by_hand(thread, "needle", False, lambda part: may_see(viewer, part)))
    anywhere = literal_search_everywhere(viewer, "needle")
    assert {hit.message_id for hit in anywhere.hits} <= everywhere
    assert ids_in(searching.result_text("needle", by_meaning(viewer, "needle"), None)) <= everywhere

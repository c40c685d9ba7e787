"""Quotes through the doors: the preview's contract, sending by API and by socket, and refusals that store nothing."""

import json

import pytest
from rest_framework.test import APIClient

from agent.models import InboxItem
from llm import catalog
from tests.chat.records import say
from tests.chat.sockets import open_socket
from tests.quotes.records import at, stored
from threads.lifecycle import create_thread
from threads.models import Thread

PREVIEW = "/api/quotes/preview/"
# What is no text is no channel, no kind and no field, and nothing that a database or an answer stumbles over.
LONE_SURROGATES = [
    ({"channel": "\ud800"}, "no-such-source"),
    ({"channel": "aaaabbbbccc\udfff"}, "no-such-source"),
    ({"kind": "\ud800"}, "bad-quote"),
    ({"\ud800": 1}, "bad-quote"),
]


@pytest.fixture
def source(alice):
    thread = create_thread(alice, title="Boats", scope="isolated")
    say(thread, "Forty metres.", "assistant")
    return thread


@pytest.fixture
def target(alice):
    return create_thread(alice, title="Lakes")


@pytest.fixture
def quote(source):
    return at(source, source.messages.get())


@pytest.fixture
def api(alice, settings):
    settings.EMULATOR_URL = "http://127.0.0.1:9"
    catalog.load_catalog()
    client = APIClient()
    client.force_authenticate(alice)
    return client


class TestPreview:
    pytestmark = pytest.mark.django_db

    def test_its_contract(self, api, source, target, quote):
        answer = api.post(PREVIEW, {"quote": quote, "target": target.channel}, format="json")
        assert answer.status_code == 200
        assert answer.json() == {
            "quote": {**quote, "title": "Boats"},
            "needs_confirm": True,
            "confirm_text": (
                "The source is isolated, and “Lakes” is not on its island. Its text is copied there and stays there. "
                "Hand this message over to “Lakes” all the same?"
            ),
        }
        freely = api.post(PREVIEW, {"quote": at(target), "target": source.channel}, format="json").json()
        assert freely == {"quote": {**at(target), "title": "Lakes"}, "needs_confirm": False, "confirm_text": ""}

    def test_it_stores_nothing_and_grants_nothing(self, api, target, quote):
        before = stored(target)
        api.post(PREVIEW, {"quote": quote, "target": target.channel, "confirmed": True}, format="json")
        sent = api.post(
            f"/api/threads/{target.channel}/messages/", {"text": "x", "key": "k", "quote": quote}, format="json"
        )
        assert (sent.status_code, sent.json()["code"]) == (409, "confirm-needed")
        assert stored(target) == before

    @pytest.mark.parametrize(
        ("changed", "status", "code"),
        [
            ({"quote": None}, 400, "bad-quote"),
            ({"quote": "message"}, 400, "bad-quote"),
            ({"quote": []}, 400, "bad-quote"),
            ({"quote": {"kind": "message"}}, 400, "bad-quote"),
            ({"target": None}, 400, "bad-quote"),
            ({"target": ["x"]}, 400, "bad-quote"),
            ({"target": "zzzzyyyyxxxx"}, 404, "no-such-thread"),
            ({"target": "", "scope": "half"}, 400, "bad-quote"),
            ({"target": "", "category": "none such"}, 409, "refused"),
            ({"quote": {"kind": "channel", "channel": "zzzzyyyyxxxx"}}, 404, "no-such-source"),
        ],
    )
    def test_what_is_refused_has_a_reason(self, api, target, quote, changed, status, code):
        answer = api.post(PREVIEW, {"quote": quote, "target": target.channel, **changed}, format="json")
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert answer.json()["reason"].endswith(".")

    @pytest.mark.parametrize("field", ["quote", "target"])
    def test_what_is_missing_is_said(self, api, target, quote, field):
        body = {"quote": quote, "target": target.channel}
        del body[field]
        assert api.post(PREVIEW, body, format="json").status_code == 400

    def test_what_cannot_be_quoted_is_a_conflict_with_a_reason(self, api, alice, target):
        main = Thread.objects.get(owner=alice, kind="main")
        answer = api.post(PREVIEW, {"quote": at(main), "target": target.channel}, format="json")
        assert (answer.status_code, answer.json()["code"]) == (409, "not-quotable")

    @pytest.mark.parametrize(
        "body",
        [
            "",
            "{",
            "nonsense",
            "[1, 2]",
            '"text"',
            "null",
            "7",
            '{"quote": NaN',
            "[" * 100_000,
        ],
        ids=["empty", "open", "word", "list", "string", "null", "number", "nan", "deep"],
    )
    def test_malformed_json_is_a_4xx_with_a_reason(self, api, body):
        answer = api.post(PREVIEW, body, content_type="application/json")
        assert answer.status_code == 400
        assert (answer.json()["code"], bool(answer.json()["reason"])) == ("bad-quote", True)

    def test_a_lone_surrogate_points_at_nothing(self, api, target, quote):
        def code_of(quote, channel):
            body = json.dumps({"quote": quote, "target": channel})
            assert "\\u" in body, "the surrogate goes out as JSON writes it"
            answer = api.post(PREVIEW, body, content_type="application/json")
            assert 400 <= answer.status_code < 500 and answer.json()["reason"]
            return answer.json()["code"]

        for changed, code in LONE_SURROGATES:
            assert code_of({**quote, **changed}, target.channel) == code, changed
        assert code_of(quote, "\ud800") == "bad-quote"

    @pytest.mark.parametrize("body", [b"\xff\xfe{", b'{"quote": "\xff"}'])
    def test_what_is_no_text_is_a_4xx(self, api, body):
        assert api.post(PREVIEW, body, content_type="application/json").status_code == 400

    def test_a_form_is_no_json(self, api, target):
        answer = api.post(PREVIEW, "target=x", content_type="application/x-www-form-urlencoded")
        assert (answer.status_code, answer.json()["code"]) == (415, "bad-quote")

    def test_nobody_previews_without_signing_in(self, db):
        assert APIClient().post(PREVIEW, {}, format="json").status_code in (401, 403)

    def test_a_stranger_learns_nothing_of_a_conversation(self, bob, target, quote, settings):
        settings.EMULATOR_URL = "http://127.0.0.1:9"
        own = create_thread(bob)
        api = APIClient()
        api.force_authenticate(bob)
        known = api.post(PREVIEW, {"quote": quote, "target": own.channel}, format="json")
        unknown = api.post(
            PREVIEW, {"quote": {**quote, "channel": "zzzzyyyyxxxx"}, "target": own.channel}, format="json"
        )
        assert known.status_code == unknown.status_code == 404
        assert known.json() == unknown.json()


class TestSendingByTheApi:
    pytestmark = pytest.mark.django_db

    def send(self, api, target, quote, **more):
        if "confirmed" in more:
            more["confirm_text"] = api.post(PREVIEW, {"quote": quote, "target": target.channel}, format="json").json()[
                "confirm_text"
            ]
        body = {"text": "Look", "key": "k", "quote": quote, **more}
        return api.post(f"/api/threads/{target.channel}/messages/", body, format="json")

    def test_a_confirmed_quote_is_stored(self, api, target, quote):
        assert self.send(api, target, quote, confirmed=True).status_code == 202
        assert InboxItem.objects.get(thread=target).quote["text"] == "Forty metres."

    def asked(self, api, target, quote) -> str:
        return api.post(PREVIEW, {"quote": quote, "target": target.channel}, format="json").json()["confirm_text"]

    def check_asked(self, answer, asked) -> None:
        """The refusal that the socket gives too: the sentence, which can be confirmed."""
        assert (answer.status_code, answer.json()) == (409, {"code": "confirm-needed", "reason": asked})

    @pytest.mark.parametrize("confirmed", ["true", "True", "", 1, 1.0, False, None, "yes", [True], {"confirmed": True}])
    def test_only_true_itself_is_accepted_as_a_confirmation(self, api, target, quote, confirmed):
        before = stored(target)
        self.check_asked(self.send(api, target, quote, confirmed=confirmed), self.asked(api, target, quote))
        assert stored(target) == before

    @pytest.mark.parametrize("sentence", [None, "", "The source is isolated.", 7, True, ["x"], {}])
    def test_a_sentence_that_was_not_asked_confirms_nothing(self, api, target, quote, sentence):
        before = stored(target)
        body = {"text": "Look", "key": "k", "quote": quote, "confirmed": True, "confirm_text": sentence}
        answer = api.post(f"/api/threads/{target.channel}/messages/", body, format="json")
        self.check_asked(answer, self.asked(api, target, quote))
        assert stored(target) == before

    def test_a_form_cannot_confirm(self, api, target, quote):
        before = stored(target)
        asked = self.asked(api, target, quote)
        body = {"text": "Look", "key": "k", "quote": json.dumps(quote), "confirmed": "true", "confirm_text": asked}
        self.check_asked(api.post(f"/api/threads/{target.channel}/messages/", body, format="multipart"), asked)
        assert stored(target) == before

    @pytest.mark.parametrize("bad", [7, "x", [], {"kind": "message"}])
    def test_a_malformed_quote_is_refused_with_a_reason(self, api, target, bad):
        before = stored(target)
        answer = self.send(api, target, bad)
        assert (answer.status_code, answer.json()["code"]) == (400, "bad-quote")
        assert stored(target) == before

    def test_a_lone_surrogate_points_at_nothing(self, api, target, quote):
        before = stored(target)
        for changed, code in LONE_SURROGATES:
            body = json.dumps({"text": "Look", "key": "k", "quote": {**quote, **changed}})
            answer = api.post(f"/api/threads/{target.channel}/messages/", body, content_type="application/json")
            assert answer.json()["code"] == code, changed
        assert stored(target) == before

    def test_no_quote_is_no_quote(self, api, target):
        assert self.send(api, target, None).status_code == 202
        assert InboxItem.objects.get(thread=target).quote is None


@pytest.mark.django_db(transaction=True)
class TestSendingByTheSocket:
    @pytest.fixture
    def page(self, server, alice, target):
        with open_socket(server, alice) as socket:
            socket.open(target.channel)
            yield socket

    def refused(self, page, target, **frame):
        """The one frame that a refused message is answered with; nothing is stored and nothing else is told."""
        before = stored(target)
        page.send(type="send", channel=target.channel, key="k", text="Look", **frame)
        answer = page.receive()
        assert page.silent()
        assert stored(target) == before
        assert (answer["type"], answer["key"], answer["channel"]) == ("chat_rejected", "k", target.channel)
        return answer

    def test_an_unconfirmed_downgrade_is_one_refusal_and_nothing_else(self, page, target, quote):
        answer = self.refused(page, target, quote=quote)
        assert answer["code"] == "confirm-needed"
        assert "“Lakes” is not on its island" in answer["reason"]

    def test_nothing_but_true_and_the_sentence_confirms(self, page, target, quote):
        asked = self.refused(page, target, quote=quote)["reason"]
        for confirmed, sentence in [
            *((value, asked) for value in ("true", 1, False, None)),
            *((True, value) for value in (None, "", 7, [asked], asked.replace("Lakes", "Seas"))),
        ]:
            answer = self.refused(page, target, quote=quote, confirmed=confirmed, confirm_text=sentence)
            assert (answer["code"], answer["reason"]) == ("confirm-needed", asked)

    @pytest.mark.parametrize("bad", ["x", 7, [], False, {"kind": "message"}])
    def test_a_malformed_quote_gives_the_words_back(self, page, target, bad):
        assert self.refused(page, target, quote=bad)["code"] == "bad-quote"

    def test_a_lone_surrogate_points_at_nothing(self, page, target, quote):
        changed, code = LONE_SURROGATES[0]
        assert self.refused(page, target, quote={**quote, **changed})["code"] == code

    def test_a_vanished_source_gives_the_words_back_and_leaves_the_page_open(self, page, alice, source, target, quote):
        from agent import conversations

        conversations.delete(alice, source.channel)
        assert self.refused(page, target, quote=quote, confirmed=True)["code"] == "no-such-source"
        assert page.is_usable()

    def test_a_confirmed_one_arrives_with_its_card(self, page, source, target, quote):
        asked = self.refused(page, target, quote=quote)["reason"]
        page.send(
            type="send", channel=target.channel, key="k", text="Look", quote=quote, confirmed=True, confirm_text=asked
        )
        queued = page.receive("events")["events"][0]
        assert queued["body"]["item"]["quote"] == {**quote, "title": "Boats"}

"""Facts proposed by rule, with the message they were said in as evidence."""

from typing import Any

from tests.llm.emulator.mind.talking import ALL, Talk

QUESTION = """What is worth remembering? Propose facts about the user, with evidence.

[m:12] user, generation 3, 2026-11-02 08:10 UTC:
I prefer tea in the morning. What time is it?

[m:13] assistant, generation 3, 2026-11-02 08:11 UTC:
I prefer coffee, as a rule.

[m:14] user, generation 3, 2026-11-02 08:12 UTC:
We decided to paint the fence yesterday, because it was grey.
我喜欢安静的早晨。

Already known:
f:3 The user said: My name is Ada.
"""


def propose(evidence: dict[str, Any] | None = None) -> dict[str, Any]:
    evidence = evidence or {"type": "string"}
    item = {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "kind": {"enum": ["about-user", "event", "pointer"]},
            "aspect": {"enum": ["fact", "preference", "decision", "correction", "identity"]},
            "applies_to": {"type": "string"},
            "tone": {"enum": ["remark", "decision"]},
            "evidence": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"kind": {"enum": ["max-stated", "max-accepted"]}, "message_id": evidence},
                    "required": ["kind"],
                },
            },
            "replaces": {"type": "string"},
        },
        "required": ["text", "kind", "evidence"],
    }
    schema = {"type": "object", "properties": {"facts": {"type": "array", "items": item}}, "required": ["facts"]}
    return {"name": "shadow_memory_propose", "input_schema": schema}


def test_facts_are_proposed_with_their_message():
    call = Talk(propose(), *ALL).call(QUESTION)
    assert call["name"] == "shadow_memory_propose"
    assert call["input"]["facts"] == [
        {
            "text": "The user said: I prefer tea in the morning.",
            "kind": "about-user",
            "aspect": "preference",
            "applies_to": "tea in the morning",
            "tone": "remark",
            "evidence": [{"kind": "max-stated", "message_id": "m:12"}],
        },
        {
            "text": "The user said: We decided to paint the fence 2026-11-01, because it was grey.",
            "kind": "about-user",
            "aspect": "decision",
            "applies_to": "paint the fence yesterday, because it was grey",
            "tone": "decision",
            "evidence": [{"kind": "max-stated", "message_id": "m:14"}],
        },
        {
            "text": "The user said: 我喜欢安静的早晨。",
            "kind": "about-user",
            "aspect": "preference",
            "applies_to": "安静的早晨",
            "tone": "remark",
            "evidence": [{"kind": "max-stated", "message_id": "m:14"}],
        },
    ]


def test_ids_are_numbers_where_the_schema_wants_numbers():
    call = Talk(propose({"type": "integer"})).call(QUESTION)
    assert call["input"]["facts"][0]["evidence"] == [{"kind": "max-stated", "message_id": 12}]


def test_what_memory_knows_is_not_proposed_again():
    known = QUESTION.replace("My name is Ada.", "I prefer tea in the morning.")
    texts = [fact["text"] for fact in Talk(propose()).call(known)["input"]["facts"]]
    assert "The user said: I prefer tea in the morning." not in texts
    assert len(texts) == 2


def test_nothing_found_is_said_without_a_call():
    said = Talk(propose()).text("Propose facts.\n\n[m:12] user, generation 3, 2026-11-02 08:10 UTC:\nFine weather.")
    assert said.startswith("Nothing in these words is worth remembering")


def test_rows_without_an_id_prove_nothing():
    talk = Talk(propose(), *ALL)
    talk.say("I prefer tea.")
    assert "shadow_memory_propose" not in str(talk.say("Propose facts worth remembering."))


def test_an_ordinary_turn_proposes_nothing():
    talk = Talk(propose(), *ALL)
    assert all(isinstance(block, str) for block in talk.say("I prefer tea in the morning."))

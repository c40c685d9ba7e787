"""Conversations with questions whose answers are known to stand in certain messages: published ones, and one made in
code."""

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks import corpora

MEMDAILY_FOLDER = "memdaily-zh/data_generation/final_dataset/messages_and_QAs"
MEMORYBANK_FILES = ("memorybank/memory_bank_en.json", "memorybank/memory_bank_cn.json")
# What the LoCoMo questions ask for. Those of category 5 have no answer in the conversation, only words like one.
CATEGORIES = {1: "several turns", 2: "time", 3: "open", 4: "one turn", 5: "no answer"}
LOCOMO, CHINESE, CROSS_LINGUAL, MADE = "LoCoMo", "MemDaily, Chinese", "MemoryBank, Chinese to English", "made in code"
SEED = 20_260_202


@dataclass(frozen=True)
class Question:
    """`evidence` are places in the conversation's messages; `group` names the kind of question."""

    text: str
    evidence: frozenset[int]
    group: str


@dataclass
class Conversation:
    """`messages` are (text, time) in order, all a user's."""

    corpus: str
    messages: list[tuple[str, datetime]] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)


def locomo(folder: Path) -> Iterator[Conversation]:
    """10 conversations of two people in English; 1,981 questions have evidence."""
    asked = {
        sample["sample_id"]: sample["qa"]
        for sample in json.loads((folder / corpora.LOCOMO_FILE).read_text(encoding="utf-8"))
    }
    conversations: dict[str, Conversation] = {}
    places: dict[str, dict[str, int]] = {}
    for line in corpora.locomo(folder):
        name = line["conversation"]
        conversation = conversations.setdefault(name, Conversation(LOCOMO))
        places.setdefault(name, {})[line["id"]] = len(conversation.messages)
        text = f"{line['name']}: {line['text']}"
        conversation.messages.append((text, datetime.fromisoformat(line["created"])))
    for name, conversation in conversations.items():
        for question in asked[name]:
            evidence = _places(question["evidence"], places[name])
            if evidence:
                group = f"{question['category']} {CATEGORIES[question['category']]}"
                conversation.questions.append(Question(question["question"], evidence, group))
    yield from conversations.values()


@dataclass(frozen=True)
class Facts:
    """Facts that were observed in one conversation, each with the turn that it was observed in, and the questions asked
    about it with the turns that answer them."""

    facts: list[tuple[str, str]]
    questions: list[tuple[str, frozenset[str]]]


def locomo_facts(folder: Path) -> Iterator[Facts]:
    """The 2,541 observed facts of the LoCoMo conversations."""
    for sample in json.loads((folder / corpora.LOCOMO_FILE).read_text(encoding="utf-8")):
        facts = [
            (text, turns if isinstance(turns, str) else turns[0])
            for session in sample["observation"].values()
            for observed in session.values()
            for text, turns in observed
        ]
        asked = [
            (question["question"], frozenset(re.findall(r"D\d+:\d+", " ".join(question["evidence"]))))
            for question in sample["qa"]
            if question["category"] != 5
        ]
        yield Facts(facts, asked)


# A question and the fact that answers it, made for this.
MADE_PAIRS = (
    ("What instrument does Ann play?", "Ann plays the cello in an amateur orchestra."),
    ("Where did Ben grow up?", "Ben grew up in a village in the north of Norway."),
    ("Why did Ann leave her job?", "Ann left her job because she wanted to work with animals."),
    ("What is Ben allergic to?", "Ben is allergic to peanuts."),
    ("How many children does Ann have?", "Ann has two daughters and a son."),
    ("Which sport does Ben do at weekends?", "Ben goes climbing with his brother every weekend."),
    ("What colour is Ann's new car?", "Ann bought a red car."),
    ("Who gave Ben the old watch?", "Ben's grandfather gave him a watch when he turned eighteen."),
    ("When does Ann's course begin?", "Ann starts a pottery course on 4 May 2023."),
    ("What does Ben want to open one day?", "Ben dreams of opening his own bakery."),
    ("What pets does Ann have?", "Ann has a cat called Oscar."),
    ("Which country did Ben travel to last?", "Ben travelled to Portugal in March 2023."),
    ("What are Ann's favourite books?", "Ann likes to read crime novels before she sleeps."),
    ("How should reports be written for Ben?", "Ben prefers short reports with the conclusion first."),
    ("What did Ann decide about the garden?", "Ann decided to plant apple trees behind the house."),
    ("小李住在哪里?", "小李住在杭州西湖边上。"),
    ("小李喜欢喝什么?", "小李喜欢喝龙井茶,不喝咖啡。"),
    ("小王的孩子多大了?", "小王的儿子今年五岁。"),
    ("小王为什么换工作?", "小王换工作是因为想离家近一点。"),
    ("小李每周做什么运动?", "小李每周三晚上打羽毛球。"),
    ("小王对什么过敏?", "小王对海鲜过敏。"),
    ("小李决定用哪个数据库?", "小李决定新系统用 PostgreSQL。"),
)


def made_facts() -> Facts:
    """The same form, of a few facts made in code."""
    facts = [(fact, str(number)) for number, (_question, fact) in enumerate(MADE_PAIRS)]
    return Facts(facts, [(asked, frozenset({str(number)})) for number, (asked, _fact) in enumerate(MADE_PAIRS)])


def _places(evidence: list[str], places: dict[str, int]) -> frozenset[int]:
    ids = [found for text in evidence for found in re.findall(r"D\d+:\d+", text)]
    return frozenset(places[found] for found in ids if found in places)


def memdaily(folder: Path) -> Iterator[Conversation]:
    """What people tell an assistant of events, in Chinese: 600 questions on one conversation of 3,183 messages."""
    conversation = Conversation(CHINESE)
    began = datetime(2024, 4, 1, tzinfo=UTC)
    for file in sorted((folder / MEMDAILY_FOLDER).glob("*_events.json")):
        for trajectory in json.loads(file.read_text(encoding="utf-8")):
            first = len(conversation.messages)
            for message in trajectory["message_list"]:
                when = began + timedelta(minutes=len(conversation.messages))
                conversation.messages.append((message["message"], when))
            for question in trajectory["question_list"]:
                evidence = frozenset(first + step for step in _steps(question["target_step_id"]))
                if evidence:
                    conversation.questions.append(Question(question["question"], evidence, CHINESE))
    yield conversation


def _steps(value: Any) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    else:
        for part in value:
            yield from _steps(part)


def memorybank(folder: Path) -> Iterator[Conversation]:
    """The same words in two languages: the Chinese ones ask for the English ones, where both have as many."""
    english, chinese = (json.loads((folder / name).read_text(encoding="utf-8")) for name in MEMORYBANK_FILES)
    conversation = Conversation(CROSS_LINGUAL)
    for person, translated in zip(english.values(), chinese.values(), strict=True):
        for day, exchanges in person["history"].items():
            others = translated["history"].get(day, [])
            for number, exchange in enumerate(exchanges):
                if len(others) == len(exchanges):
                    place = frozenset({len(conversation.messages)})
                    conversation.questions.append(Question(others[number]["query"], place, CROSS_LINGUAL))
                when = datetime.fromisoformat(day).replace(tzinfo=UTC) + timedelta(minutes=number)
                conversation.messages.append((exchange["query"], when))
    yield conversation


THINGS = ("bicycle", "violin", "camera", "boat", "telescope", "kettle", "carpet", "lamp", "clock", "sewing machine")
PLACES = ("in the cellar", "at my sister's", "behind the shed", "at the repair shop", "in the attic", "on the balcony")


def made(messages: int) -> Iterator[Conversation]:
    """One conversation made in code, always the same: things and where they are, among small talk."""
    chance = random.Random(SEED)
    conversation = Conversation(MADE)
    began = datetime(2023, 1, 1, tzinfo=UTC)
    asked = {place * messages // len(THINGS): thing for place, thing in enumerate(THINGS)}
    for number in range(messages):
        if number in asked:
            text = f"I left the old {asked[number]} {chance.choice(PLACES)} last week."
            question = f"Where did I leave the {asked[number]}?"
            conversation.questions.append(Question(question, frozenset({number}), MADE))
        else:
            text = f"{chance.choice(corpora.MOODS)} {chance.choice(corpora.TOPICS)}. ({number})"
        conversation.messages.append((text, began + timedelta(minutes=number)))
    yield conversation


def published(folder: Path) -> Iterator[Conversation]:
    """Every conversation of the data sets that the folder holds."""
    if (folder / corpora.LOCOMO_FILE).exists():
        yield from locomo(folder)
    if (folder / MEMDAILY_FOLDER).exists():
        yield from memdaily(folder)
    if (folder / MEMORYBANK_FILES[0]).exists():
        yield from memorybank(folder)

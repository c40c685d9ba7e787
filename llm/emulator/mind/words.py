"""Words of English and Chinese text: language, sentences, and the terms by which text is matched."""

import re

CJK = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_CJK_RUN = re.compile(f"[{CJK}]+")
_LATIN_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|\d[\d.,:/-]*\d|\d", re.UNICODE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])|\n+")

_STOP_WORD_LIST = """
    a about again all also am an and any are as at be because been before but by can could did do does doing
    earlier else find for from get give had has have he her here him his how i if in into is it its just know let
    like look me memory message messages mention mentioned my no not now of on or our please remember recall
    remind said say search she should show so some talk talked tell than that the their them then there these they
    thing this those to told up us was we were what when where which who whom whose why will with would you your
    yours im whats isn aren wasn don doesn didn won can couldn ago ever conversation history
"""
_STOP_WORDS = frozenset(_STOP_WORD_LIST.split())
# Words and characters that carry grammar and not matter; what is left between them is matched by pairs.
_STOP_CHINESE = re.compile(
    "(?:来着|时候|到底|究竟|现在|多少|哪里|哪个|知道|记得|告诉|"
    "[的了吗呢吧啊呀嘛是在有和与或就都也很还把被给对从到我你您他她它们这那哪谁啥什么怎样几请问说过之前叫])+"
)
# What is asked for in one word and told in another.
_TOLD_AS = (("叫什么名字", "名"), ("名字", "名"), ("姓名", "名"), ("多大", "岁"), ("年龄", "岁"))
_ASKING = re.compile(
    r"(?:and |so |but |please )?(?:what|who|whom|whose|when|where|which|why|how|do|does|did|is|are|was|were|can|"
    r"could|will|would|should|have|has|tell me|remind me|find|search|look (?:up|for)|show me|list|recall)\b"
)
_ASKING_CHINESE = re.compile("什么|哪|谁|怎么|怎样|为什么|多少|几[点个号时]|是否|有没有|查一下|找一下|搜索")
_ENDINGS = re.compile(r"(?:ies|ied|ing|ed|es|s|'s|’s)$")


def is_chinese(text: str) -> bool:
    """Whether `text` is to be answered in Chinese: it has Chinese characters, and not just a few among many words."""
    chinese = sum(len(run) for run in _CJK_RUN.findall(text))
    return chinese > 0 and chinese * 2 >= len(re.findall(r"[A-Za-z]+", text))


def sentences(text: str) -> list[str]:
    """The sentences and lines of `text`, trimmed, without empty ones."""
    return [part.strip() for part in _SENTENCE_END.split(text) if part and part.strip()]


def terms(text: str) -> list[str]:
    """What matters in `text`, lower case, without repeats: stems of words, and pairs of Chinese characters."""
    found: dict[str, None] = {}
    lowered = text.lower()
    for word in _LATIN_WORD.findall(lowered):
        if _CJK_RUN.search(word):
            continue
        bare = re.split("['’]", word)[0]
        if bare not in _STOP_WORDS and (len(word) > 1 or word.isdigit()):
            found[stem(word)] = None
    for run in _CJK_RUN.findall(lowered):
        for asked, told in _TOLD_AS:
            run = run.replace(asked, told)
        for part in filter(None, _STOP_CHINESE.split(run)):
            pairs = [part[start : start + 2] for start in range(len(part) - 1)] or [part]
            found.update(dict.fromkeys(pairs))
    return list(found)


def stem(word: str) -> str:
    """`word` without its ending, as long as four letters are left."""
    short = _ENDINGS.sub("", word)
    return short if len(short) >= 4 else word


def is_question(text: str) -> bool:
    """Whether `text` asks something."""
    lowered = text.lower().strip()
    return lowered.endswith(("?", "？", "吗", "呢")) or bool(_ASKING.match(lowered) or _ASKING_CHINESE.search(lowered))


def shorten(text: str, limit_chars: int) -> str:
    """`text` on one line, at most `limit_chars` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit_chars else flat[: limit_chars - 1].rstrip() + "…"

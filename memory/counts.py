"""Numbers as people write them before a unit of time, in English and Chinese."""

UP_TO_TWENTY = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen twenty"
)
_NUMBERS = {word: number for number, word in enumerate(UP_TO_TWENTY.split(" "), 1)} | {
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "a": 1,
    "an": 1,
    "a couple of": 2,
}
_DIGITS = {sign: number for number, sign in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
COUNT = rf"(\d{{1,4}}|a couple of|an?|{UP_TO_TWENTY.replace(' ', '|')}|thirty|forty|fifty|sixty)"
# Not what is a range, a part or more of it: "two or three", "1.5", "more than two", "half a".
COUNTED = (
    r"(?<!\d[.,])(?<!\bor\s)(?<!\bto\s)(?<!\band\s)(?<!\bthan\s)(?<!\bhalf\s)(?<!\bover\s)(?<!\bunder\s)"
    rf"(?<!\bleast\s)(?<!\bmost\s){COUNT}"
)
NUMBER_CHINESE = r"(\d{1,3}|[一二两三四五六七八九]?十[一二三四五六七八九]?|[一二两三四五六七八九])"
COUNT_CHINESE = rf"(?<![几数\d.十百千万一二两三四五六七八九多半第每隔过、到至~～-]){NUMBER_CHINESE}"


def number(word: str) -> int:
    """The number that a match of COUNT or NUMBER_CHINESE means."""
    word = " ".join(word.lower().split())
    if word.isdecimal():
        return int(word)
    if word in _NUMBERS:
        return _NUMBERS[word]
    tens, is_ten, ones = word.partition("十")
    if not is_ten:
        return _DIGITS[word]
    return (_DIGITS[tens] if tens else 1) * 10 + (_DIGITS[ones] if ones else 0)

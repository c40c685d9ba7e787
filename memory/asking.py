"""Telling, in English and Chinese, whether words only ask.

Rules, not understanding: where they cannot tell, words do not only ask.
"""

import re
import unicodedata
from collections.abc import Sequence

from memory.own_words import own_words

_SENTENCE = re.compile(r"(?<=[.!])\s+|(?<=[?。！？…])\s*|\n+")
CLAUSE = re.compile(r"[,;:，；：、—]\s*|\s+-\s+")
EDGES = " \t\"'“”‘’「」『』()（）*_~.!?。！？…,，;；"

FILLER = re.compile(
    r"(?i)^((hi|hello|hey)( there| @?\w+)?|good (morning|afternoon|evening)|ok|okay|hm+|um+|so|well|thanks|thank you"
    r"|thx|please|sorry|excuse me|quick question|(one|another|a) question"
    r"|你好|您好|嗨|早上好|晚上好|谢谢|多谢|请问|嗯+|那|那么|另外|对了|不好意思|问一下|想问一下)$"
)
_VERBS_FIRST = (
    r"(should|shall|could|can|would|will|do|does|did|is|are|am|was|were|have|has|had|may|might|must"
    r"|isn't|aren't|don't|doesn't|didn't|won't|wouldn't|can't|couldn't|shouldn't|hasn't|haven't)"
)
_ASKS_ENGLISH = re.compile(
    rf"(?i)^((and|but|so|or|then)\s+)?(?!do (?:it|this|that)\b|do (?:the|your) [\w-]+ (?:first$|in small\b))"
    rf"({_VERBS_FIRST}\s+(i|we|you|it|they|he|she|this|that|these|those|there|the|my|our|your|any|anyone|anybody"
    rf"|someone)\b|(what|how|why|which|who|whom|whose|where|when)('s|\s+{_VERBS_FIRST})\b"
    r"|(how (much|many|long|often|far|about)|what (about|if)|which (one|of))\b"
    r"|(i wonder|i was wondering|i'm wondering)\b)"
)
# "Which is why I moved": it goes on with what was said before.
_GOES_ON = re.compile(r"(?i)^which (is|was|are|were) (why|how|where|when|what|because|also|not|fine|nice|great)\b")
# A noun after the question word, or any subject after the verb: "What editor should I use", "Does vim beat emacs".
_SUBJECT = r"(?!(?:not|never|always|rather|and|to|be|have|use|do|go|get|like|love|prefer)\b)[\w'.+#/-]+"
_JUDGED = (
    r"(better|best|worse|worst|good|bad|right|wrong|ok|okay|fine|worth|safe|enough|necessary|possible|recommended"
    r"|needed|overkill|overrated|(?!other|ever|never|over|under|after|number|member|user)\w{3,}er than"
    r"|(more|less) \w+ than)"
)
# What says of somebody, left unnamed, what they do or are: "Is born in …", "Does yoga every morning".
_NO_SUBJECT = rf"(?! (?:not|\w+ed|\w+ing|born|made|told|an?|the|in|on|at|very|too|so|from|{_JUDGED})\b)"
_NO_VERB = r"(?! (?:every|on|in|at|and|for|with|well|daily|yesterday|last|this|today)\b)"
_ASKS_OF_THINGS = re.compile(
    r"(?i)^(?:(what|which|whose)(?! (?:matters|counts)\b)"
    r"( [\w'+#.-]+){1,4} ((should|shall|could|can|would|will|do|does|did|must|might)"
    r" (i|we|you|they|he|she|it|one|people|everyone|the|this|that|my|our|your)"
    r"|(is|are|was|were|am|have|has|had) (i|we|you|they|he|she|it)"
    rf"|(is|are|would be|works?|fits?|suits?) (the |a )?{_JUDGED})\b"
    rf"|(is|are|was|were|isn't|aren't){_NO_SUBJECT}( {_SUBJECT}){{1,4}} ((a|an|the) )?{_JUDGED}\b"
    rf"|(does|doesn't|did|didn't) {_SUBJECT}{_NO_VERB} \w+"
    rf"|(should|would|could|can|will)( {_SUBJECT}){{1,2}} (be|work|help|scale|handle|cause|break|fit|suit|matter"
    r"|replace|beat|improve|make|need|hold|have)\b"
    r"|(any )?thoughts (on|about)\b"
    r"|any (ideas?|opinions?|suggestions?|advice|recommendations?|tips|feedback|objections?) (on|about|for|to)\b)"
)
_WHETHER = (
    r"要不要|是不是|能不能|可不可以|该不该|应不应该|有没有|会不会|好不好|行不行|对不对|需不需要|值不值得|用不用|是否"
    r"|(?P<verb>(?![动时])[\u4e00-\u9fff])不(?P=verb)(?![已得])"
)
_ASKS_CHINESE = re.compile(
    r"^(请问|怎么|怎样|为什么|为何|什么|哪|谁|如何|多少|几点|几个|是否|能否|可否|难道)"
    r"|(吗|(?<![这那])么|呢)$"
    rf"|{_WHETHER}"
    r"|(怎么办|怎么样|什么意思|是什么|为什么|哪个|哪些|哪里|多少|几点|(?<!无论)(?<!不管)如何)$"
    r"|^(何时|何处|何地|凭什么|何以)"
    r"|^(应该|应当|该)?(采用|推荐|[用选挑买去学换装找做吃喝看读写]).{0,6}(什么|哪)(?!.*由).{0,10}$"
)
# What holds whatever the answer is tells: 谁都别动, 什么都不要, 有没有糖我都喝.
_WHATEVER = re.compile(
    r"(什么|谁|哪[个些里儿种]?|多少|几.)\w{0,2}?[都也]|(怎么|怎样|如何|咋)样?[都也]"
    r"|^(?![是要能会该对行好])(?P<own>[\u4e00-\u9fff])不(?P=own)(?:都?[随由](?:你|您|我|他|她)|(?:我|你|您)(?:自己)?(?:决定|说了算)$)"
    rf"|({_WHETHER}).{{0,8}}(我们?[都也]|[都也](行|好|可以|没事|一样|无所谓))"
)
# What asks without being phrased as a question. "Tell me when you delete something" is an instruction and does not.
_OPEN_CHOICE = (
    r"(whether\b"
    r"|(what|which|how|why|who|when|where|if)\b.*\b(should|ought|best|better|recommend|prefer|advise)\b"
    r"|(what|which|how|when|where)(\s+\w+)?\s+to\b)"
)
_ASKS_INDIRECTLY = re.compile(
    rf"(?i)^(please\s+)?((tell|show|advise|remind|explain|let (me|us) know|say|check|find out|look up|help (me|us)"
    rf"|i (want|need|would like) to know|i'd like to know|i('m| am) (wondering|not sure|unsure|curious|asking)"
    rf"|i wonder|i was wondering|i (don't|do not) know)\b[^.]*?\b{_OPEN_CHOICE}|whether (i|we) should\b)"
    r"|^(请|麻烦(你)?|帮我)?(告诉我|说说|讲讲|解释|想想|看看|我想知道|我们想知道|我想问|我不知道|我不确定)"
    r".*(是否|该|应该|哪|更好|建议|要不要|好不好|能不能|还是)"
)
_ASKS_WHICH = re.compile(rf"(?i)^(what|how|why|which|who)('s|\s+{_VERBS_FIRST})\b")
_ALTERNATIVES = re.compile(r"(?i)\bor\b|还是")
# Of oneself too such words ask, unless somebody knows or minds no answer (`_KNOWS`): 我以后要不要…, 我该用什么.
_ASKS_OURSELVES = re.compile(
    rf"^(我|我们|咱们|咱).{{0,20}}({_WHETHER}|换不换)"
    r"|^(我|我们|咱们|咱).{0,20}(该|应该|应当).{0,10}(什么|哪|怎么|怎样|如何|多少|谁)"
    r"|^(我|我们|咱们|咱).{0,20}(?<![不没])(什么|哪|怎么|怎样|如何|谁).{0,12}(好|合适|办|呢)$"
    r"|^(我|我们|咱们|咱).{0,20}[用选买去找](什么|哪[个种些里儿家款]?)$"
)
_OR_CHINESE = (
    r"\s*(?<![我你您他她它们的了久得后终来在也都就可但想能然果最])还是\s*"
    r"(?!更|很|比较|有点|算了|[不没会能得那想老]|觉得|喜欢|一样)"
)
# 该用A还是B, A好还是B好; and not 我用空格还是更舒服, nor 最后用的还是空格.
_CHOOSES = re.compile(
    r"(?:[该要用选挑买去做走学写装放叫吃喝住穿坐开养是].{1,30}"
    rf"|[好快强行值难]|合适|方便|便宜|划算|靠谱|稳定?|简单|可以){_OR_CHINESE}[^了]{{1,30}}$"
)
# Two things and nothing said of them: "Tabs or spaces".
_CHOICE = re.compile(rf"(?i)^(?:[\w-]+ or [\w-]+|(?!.*[我都])\S{{1,12}}{_OR_CHINESE}[^\s了]{{1,12}})$")
_KNOWS = re.compile(
    r"(?<![不想])知道|(?<![不想])(?:清楚|明白|记得|确定)|告诉(?:过)?(?:你|您|他|她|大家)|决定|取决"
    r"|无所谓|不在乎|不介意|不管|无论|不论|(?<![首成])都|也"
)
_CALLED_BY = (
    r"(?:@\w+|claude|max|maxclaw|gpt|chatgpt|assistant|bot|team|guys|folks|everyone|man|dude|buddy|friend|mate|sir"
    r"|(?:小?助手|老师|大神|同学|朋友们?|大家|亲)(?=我|你|咱|该|应|要|用|有|能|可|哪|什|怎))"
)
_LEADS_IN = re.compile(
    rf"(?i)^(?:(?:hey|hi|hello|ok|okay|so|well|um+|hm+|please|sorry|then|now|and|but|or|anyway|also|actually"
    rf"|{_CALLED_BY})(?:\s+|(?<=[^\x00-\x7f])|(?=[^\x00-\x7f])))+(?=\S)"
)
# Any one name before a question to or of somebody who speaks here; "never would I" and the like tell.
_CALLS = re.compile(
    rf"^@?(?!(?:Never|Not|Nor|Neither|Only|Rarely|Seldom|Hardly|Nowhere|Here|There|Such|Thus)\b)[A-Z][\w-]*\s+"
    rf"(?=(?i:{_VERBS_FIRST}\s+(?:i|we|you)\b))"
)
_CALLED = re.compile(
    r"^@?(?!(?i:yes|yeah|yep|no|nope|sure|agreed|right|correct|exactly|done|never|always|both|neither|none)$)"
    r"(?:[A-Z][\w-]*|小?助手|老师|大神|同学|朋友们?|大家|亲)$"
)
_AGREES_TOO = re.compile(rf"(?i)^(so|nor|neither)?\s*{_VERBS_FIRST}\s+(i|we)$")
_OF_WHAT = re.compile(
    r"(?i)^(if|as for|regarding|concerning|when it comes to|(for|in|on|about|with) (?!.*\b(i|we)\b))\b"
    r"|^(如果|要是|假如|假设|对于|关于|至于|针对|比如|例如)"
)
_VIEW = re.compile(r"(?i)\b(prefer|like|love|hate|want|always|never|must)\b|喜欢|讨厌|偏好|总是|从不|必须")
_TAG = re.compile(
    r"(?i)^(ok|okay|right|alright|yes|no|good|fine|correct|deal|got it|understood|agreed|isn't it|aren't they"
    r"|don't you( think)?|is that (ok|okay|clear|fine)|does that work"
    r"|好吗|好吧|行吗|行不行|好不好|对吗|对吧|是吧|可以吗|明白吗|懂吗)$"
)
# Chinese questions that end so need no mark, whoever they begin with.
_ENDS_ASKING = re.compile(r"(?:吗|[行好对]不[行好对]|可不可以|能不能|是不是)$")
_STATES = re.compile(r"(?i)^(i|i'm|i've|i'd|i'll|we|we're|we've|we'll|my|our|let's|我|我们|咱们|咱)(?![a-z])")
_UNSURE = re.compile(
    r"(?i)\b(don't know|do not know|wonder|wondering|not sure|unsure|no idea|curious|asking|want to know"
    r"|like to know)\b|不知道|不清楚|不确定|想问|想知道|好奇|请教|纠结|犹豫|在考虑"
)

# What only says that a question comes: "I have a question, should we use tabs?"
_ANNOUNCES = re.compile(
    r"(?i)^((my|our|a|another|one( more)?|quick|here's (a|my)|i have (a|another|one( more)?)|i've got a|just (a|one))"
    r"( \w+)? (question|q|thing|doubt)s?|(i'm|i am|i was|we're|we were|just) (thinking|debating|asking myself)"
    r"|(i|we) have (two|three|several|some|a few|these|\d+) (options|choices|questions)|anyway|btw|by the way|say"
    r"|(我|我们)?(还)?有(个|一个|几个|两个)?(小)?(问题|疑问|选择|方案)|(我|我们)?(一直)?在(想|考虑|纠结))$"
)


def only_asks(text: str) -> bool:
    """Whether there is nothing in the words but questions (greetings and the like set aside)."""
    asked = False
    for sentence in sentences(text):
        if FILLER.match(sentence.strip(EDGES)) or _ANNOUNCES.match(sentence.strip(EDGES)):
            continue
        if not is_question(sentence):
            return False
        asked = True
    return asked


def sentences(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKC", own_words(text)).replace("’", "'")
    return [part.strip() for part in _SENTENCE.split(folded) if part and part.strip(EDGES)]


def is_question(sentence: str) -> bool:
    marked = sentence.rstrip(" \"'”’」』)").endswith("?")
    clauses = [clause.strip(EDGES) for clause in CLAUSE.split(sentence) if clause.strip(EDGES)]
    clauses = [clause for clause in clauses if not _ANNOUNCES.match(clause)] or clauses[-1:]
    if not clauses:
        return marked
    last = clauses[-1]
    if not marked:
        return _asks_unmarked([clause for clause in clauses if not FILLER.match(clause)])
    if len(clauses) > 1:
        before = [clause for clause in clauses[:-1] if not FILLER.match(clause)]
        if _TAG.match(last):
            # "We use tabs, ok?" tells, and asks to be told that it was heard.
            return any(_ASKS_ENGLISH.match(clause) or _ASKS_CHINESE.search(clause) for clause in before)
        if any(
            _STATES.match(clause) and not _UNSURE.search(clause) and not _ASKS_CHINESE.search(clause)
            for clause in before
        ):
            return False
    return True


def _asks_unmarked(clauses: Sequence[str]) -> bool:
    """Without its mark a sentence asks when it begins so; "I am tired, what to do" tells."""
    clauses = [clause for clause in clauses if not _only_leads_up(clause)] or clauses
    if len(clauses) > 1 and _CALLED.match(clauses[0]):
        clauses = clauses[1:]
    if not clauses:
        return False
    first, *others = clauses
    alternatives = all(_ALTERNATIVES.search(other) and not _STATES.match(other) for other in others)
    if others and alternatives:
        asks = _ASKS_ENGLISH if all(other.lower().startswith("or ") for other in others) else _ASKS_WHICH
        if _ASKS_INDIRECTLY.match(first) or asks.match(_after_call(first)):
            return True
    return all(map(_clause_asks, clauses))


def _clause_asks(clause: str) -> bool:
    clause = _after_call(clause)
    if _AGREES_TOO.match(clause.strip()):
        return False
    if _ENDS_ASKING.search(clause) or _CHOICE.match(clause) or _ASKS_INDIRECTLY.match(clause):
        return True
    if not _KNOWS.search(clause) and (_ASKS_OURSELVES.search(clause) or _CHOOSES.search(clause)):
        return True
    if _GOES_ON.match(clause) or _WHATEVER.search(clause):
        return False
    in_english = _ASKS_ENGLISH.match(clause) or _ASKS_OF_THINGS.match(" ".join(clause.split()))
    asks = in_english or (_ASKS_CHINESE.search(clause) and not _KNOWS.match(clause))
    return bool(asks and not _STATES.match(clause))


def _after_call(clause: str) -> str:
    """Without what calls on somebody or leads in before the question itself: "hey so", "Claude"."""
    return _CALLS.sub("", _LEADS_IN.sub("", clause))


def _only_leads_up(clause: str) -> bool:
    """Whether a clause says of itself nothing but that somebody is unsure, or of what the next one asks."""
    unsure = _UNSURE.search(clause) and not _ASKS_INDIRECTLY.match(clause) and not _clause_asks(clause)
    return bool(unsure or (_OF_WHAT.match(clause) and not _VIEW.search(clause)))

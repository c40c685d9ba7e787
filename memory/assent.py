"""Telling, in English and Chinese, whether words only ask and whether they expressly accept.

Rules, not understanding: where they cannot tell, words do not only ask, and do not accept.
"""

import re
import unicodedata
from collections.abc import Sequence

from memory.own_words import own_words
from threads import lexical

_SENTENCE = re.compile(r"(?<=[.!])\s+|(?<=[?。！？…])\s*|\n+")
_CLAUSE = re.compile(r"[,;:，；：、—]\s*|\s+-\s+")
_EDGES = " \t\"'“”‘’「」『』()（）*_~.!?。！？…,，;；"

_FILLER = re.compile(
    r"(?i)^(hi|hello|hey|ok|okay|hm+|um+|so|well|thanks|thank you|thx|please|sorry|excuse me|quick question"
    r"|(one|another|a) question|你好|您好|嗨|谢谢|多谢|请问|嗯+|那|那么|另外|对了|不好意思|问一下|想问一下)$"
)
_VERBS_FIRST = (
    r"(should|shall|could|can|would|will|do|does|did|is|are|am|was|were|have|has|had|may|might|must"
    r"|isn't|aren't|don't|doesn't|didn't|won't|wouldn't|can't|couldn't|shouldn't|hasn't|haven't)"
)
_ASKS_ENGLISH = re.compile(
    rf"(?i)^((and|but|so|or|then)\s+)?({_VERBS_FIRST}\s+(i|we|you|it|they|he|she|this|that|these|those|there|the|my|our"
    rf"|your|any|anyone|anybody|someone)\b|(what|how|why|which|who|whom|whose|where|when)('s|\s+{_VERBS_FIRST})\b"
    r"|(how (much|many|long|often|far|about)|what (about|if)|which (one|of))\b"
    r"|(i wonder|i was wondering|i'm wondering)\b)"
)
_ASKS_CHINESE = re.compile(
    r"^(请问|怎么|怎样|为什么|为何|什么|哪|谁|如何|多少|几点|几个|是否|能否|可否|难道)"
    r"|(吗|(?<![这那])么|呢)$"
    r"|要不要|是不是|能不能|可不可以|该不该|应不应该|有没有|会不会|好不好|行不行|对不对|需不需要|是否"
    r"|(怎么办|怎么样|什么意思|是什么|为什么|哪个|哪些|哪里|多少|几点)$"
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
_ASKS_OURSELVES = re.compile(
    r"^(我|我们|咱们|咱)(要不要|该不该|是不是|能不能|应不应该|可不可以|需不需要|有没有|会不会)"
)
_TAG = re.compile(
    r"(?i)^(ok|okay|right|alright|yes|no|good|fine|correct|deal|got it|understood|agreed|isn't it|aren't they"
    r"|don't you( think)?|is that (ok|okay|clear|fine)|does that work"
    r"|好吗|好吧|行吗|行不行|好不好|对吗|对吧|是吧|可以吗|明白吗|懂吗)$"
)
# Chinese questions that end so need no mark, whoever they begin with.
_ENDS_ASKING = re.compile(r"(?:吗|[行好对]不[行好对]|可不可以|能不能|是不是)$")
# Two things and nothing said of them: "Tabs or spaces".
_CHOICE = re.compile(r"(?i)^(?:[\w-]+ or [\w-]+|(?!.*[我都])[^\s]{1,12}还是[^\s]{1,12})$")
_STATES = re.compile(r"(?i)^(i|i'm|i've|i'd|i'll|we|we're|we've|we'll|my|our|let's|我|我们|咱们|咱)(?![a-z])")
_UNSURE = re.compile(
    r"(?i)\b(don't know|do not know|wonder|wondering|not sure|unsure|no idea|curious|asking|want to know"
    r"|like to know)\b|不知道|不清楚|不确定|想问|想知道|好奇|请教"
)

# What only says that a question comes: "I have a question, should we use tabs?"
_ANNOUNCES = re.compile(
    r"(?i)^((my|our|a|another|one( more)?|quick|here's (a|my)|i have (a|another|one( more)?)|i've got a|just (a|one))"
    r"( \w+)? (question|q|thing|doubt)s?|(i'm|i am|i was|we're|we were|just) (thinking|debating|asking myself)"
    r"|(i|we) have (two|three|several|some|a few|these|\d+) (options|choices|questions)|anyway|btw|by the way|say"
    r"|(我|我们)?(还)?有(个|一个|几个|两个)?(小)?(问题|疑问|选择|方案)|(我|我们)?(一直)?在(想|考虑|纠结))$"
)

_ACCEPTING_WORD = re.compile(
    r"(?i)^(yes|yeah|yep|yup|ok|okay|sure|right|fine|good|great|perfect|excellent|wonderful|correct|exactly|absolutely"
    r"|definitely|certainly|of course|deal|agreed|done|accepted|approved|confirmed|lgtm|cool|nice|very good|fair enough"
    r"|all right|alright|indeed|by all means|that's it)"
    r"(\s+(please|thanks|thank you|then|to me|do that|do it|go ahead|sure|yes|with me|by me|indeed))*$"
    r"|^(好|好的|好啊|好呀|好嘞|好了|好吧|很好|非常好|太好了|行|行啊|行吧|行的|可以|可以的|可以啊|对|对的|对啊|没错|是的|是啊"
    r"|没问题|同意|赞成|确认|接受|采纳|通过|正确|完全正确|不错|挺好|挺好的|定了|成|成交|就它|就这个|ok)$"
)
_ACCEPTING_START = re.compile(
    r"(?i)^((yes|yeah|yep|ok|okay|sure)\s+)?(i agree|agreed|we agree|i accept|i approve|i confirm|i'm fine with"
    r"|i am fine with|i'm happy with|(that )?(sounds|looks) (good|great|right|fine)"
    r"|that (works|is right|is correct|is fine|is good)"
    r"|that's (right|correct|fine|good|great|perfect)"
    r"|this (works|is right|is correct|is fine|is good)|works for me|fine (by|with) me|go ahead|go for it|go with"
    r"|let's (do|go|use|take|keep|stick|proceed)(?! \w+ing\b)|do it|do that"
    r"|please (do|proceed|go ahead)|proceed|you're right|you are right)"
    r"|^(我|我们)?(同意|赞成|接受|认可|确认|采纳)|^就(这么|这样|按|用|选|要|定)|^(按|照)(你|这个|这样|此|上面)"
    r"|^听你的|^你说得对|^你说的对|^(这样|这个|这么做)(就)?(可以|行|好|很好|没问题|挺好)|^(好|好的|行|可以|对|是的)(就|那就|那么)"
)
# After these it goes without saying that what follows is meant; "ok" and the like only show that somebody listened.
_PLAIN_YES = re.compile(
    r"(?i)^(yes|yeah|yep|yup|agreed|correct|exactly|absolutely|definitely|certainly|of course|by all means|approved"
    r"|confirmed|对|对的|是的|没错|同意|赞成|正确|确认)$"
)
_LEADING_YES = re.compile(r"(?i)^(yes|yeah|yep|yup)\s+(?=\w)")
_CARRIES_OUT = re.compile(
    r"(?i)^(please\s+)?(use|take|keep|make|remember|note|save|do)\b|^(i|we) (do|did|am|are|have|will|would)$"
    r"|^(就|请)?(用|选|按|记住|记下)"
)
_NAMES = re.compile(
    r"(?i)(?:\b(?:let's do|go with|use|take|keep|pick|choose|stick (?:with|to)|agree with|proceed with)\s+|[用选])"
    r"(?P<what>.+?)[吧了]?$"
)
_POINTS_BACK = re.compile(
    r"(?i)\b(the|an?|that|this|it|them|those|these|you|your|yours|my|our|plan|proposal|suggestion|idea|option|approach"
    r"|choice|one|way|recommendation|then|please|for|now|from|on|in|and|to|as|is|all|both|so|do|what|said|say)\b"
    r"|这个|那个|这种|这样|那样|这|那|你|您|我|们|说|讲|提|议|的|它|此|上面|方案|建议|办法|方法|做法|好|就|来|吧|了"
)
_COURTESY = re.compile(r"(?i)^((many\s+)?(thanks|thank you|thx)\b.*|please|(谢谢|多谢|辛苦|麻烦)(你|您|了)*)$")
_NEXT_TASK = re.compile(r"(?i)^(next|now|then|after that|also|please)\b|^(接下来|下一步|然后|现在|请)")
_PUTS_OFF = re.compile(
    r"(?i)\b(think|thinking|consider|considering|sleep on|look into|tell (me|us)|show (me|us)|explain|hate|dislike"
    r"|other (options?|ways?)|alternatives?)\b|考虑|再(看|想|给|说|聊|议)|看看|说说|其他|其它|讨厌"
)
_YES_AFTER_ALL = re.compile(
    r"(?i)\b(no (problem|problems|objection|objections|doubt|worries)|not bad|why not|can't complain"
    r"|couldn't agree more|don't change (a thing|anything)|nothing (to add|wrong))\b"
    r"|没问题|没错|不错|没意见|没有(问题|意见|异议)|毫无疑问"
)
_REFUSES = re.compile(
    r"(?i)\b(no|nope|nah|not|never|none|neither|don't|doesn't|didn't|isn't|aren't|wasn't|won't|can't"
    r"|cannot|couldn't|wouldn't|shouldn't"
    r"|disagree|wrong|incorrect|stop|reject|refuse"
    r"|instead|rather|however|but|except|although|though|unless|wait"
    r"|maybe|perhaps|later|almost|if|opposite|partly|in part|terrible|awful|yeah right)\b"
    r"|(sounds|looks|works) (\w+ )?for (?!(me|us|now|all|both|everyone|everybody|the|this|that|it)\b)\w+"
    r"|算了|不|别|没|错|但|可是|然而|除了|除非|反对|拒绝|等等|等一下|再想想|也许|可能|如果|或许"
)


def only_asks(text: str) -> bool:
    """Whether there is nothing in the words but questions (greetings and the like set aside)."""
    asked = False
    for sentence in _sentences(text):
        if _FILLER.match(sentence.strip(_EDGES)) or _ANNOUNCES.match(sentence.strip(_EDGES)):
            continue
        if not _is_question(sentence):
            return False
        asked = True
    return asked


def names_something_else(text: str, conclusion: str) -> bool:
    """Whether an accepting sentence names what to go with, and nothing of that stands in the conclusion: "Let's go with
    MySQL" accepts no PostgreSQL. What only points back ("your plan", 这个方案) names nothing."""
    said = set(lexical.tokens(conclusion))
    for sentence in _sentences(text):
        for clause in _CLAUSE.split(sentence) if _accepting(_YES_AFTER_ALL.sub(" ok ", sentence)) else ():
            found = _NAMES.search(clause.strip(_EDGES))
            named = lexical.tokens(_POINTS_BACK.sub(" ", found["what"])) if found else []
            if named and not said & set(named):
                return True
    return False


def accepts(text: str) -> bool:
    """Whether the words expressly accept what was said before them: in so many words, from their first sentence on, and
    with nothing beside it but thanks, what is to be carried out, or the next task. Silence, a question, a no, a
    condition, a reservation or a "let me think" accept nothing, and neither does an "ok" before other words."""
    accepted = False
    for sentence in _sentences(text):
        certain = _YES_AFTER_ALL.sub(" ok ", sentence)
        if _is_question(sentence) or _REFUSES.search(certain) or _PUTS_OFF.search(certain):
            return False
        if _accepting(certain):
            accepted = True
        elif not _beside_the_point(certain, accepted):
            return False
    return accepted


def _accepting(sentence: str) -> bool:
    said = _LEADING_YES.sub("yes, ", sentence)
    clauses = [" ".join(clause.strip(_EDGES).split()) for clause in _CLAUSE.split(said)]
    clauses = [clause for clause in clauses if clause and not _COURTESY.match(clause)]
    plainly = any(_PLAIN_YES.match(clause) for clause in clauses[:1])
    words = [_ACCEPTING_WORD.match(clause) or _ACCEPTING_START.match(clause) for clause in clauses]
    return any(words) and all(
        word or _FILLER.match(clause) or (plainly and _CARRIES_OUT.match(clause))
        for word, clause in zip(words, clauses, strict=True)
    )


def _beside_the_point(sentence: str, accepted: bool) -> bool:
    said = sentence.strip(_EDGES)
    return bool(_FILLER.match(said) or _COURTESY.match(said) or (accepted and _NEXT_TASK.match(said)))


def _sentences(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKC", own_words(text)).replace("’", "'")
    return [part.strip() for part in _SENTENCE.split(folded) if part and part.strip(_EDGES)]


def _is_question(sentence: str) -> bool:
    marked = sentence.rstrip(" \"'”’」』)").endswith("?")
    clauses = [clause.strip(_EDGES) for clause in _CLAUSE.split(sentence) if clause.strip(_EDGES)]
    clauses = [clause for clause in clauses if not _ANNOUNCES.match(clause)] or clauses[-1:]
    if not clauses:
        return marked
    last = clauses[-1]
    if not marked:
        return _asks_unmarked([clause for clause in clauses if not _FILLER.match(clause)])
    if len(clauses) > 1:
        before = [clause for clause in clauses[:-1] if not _FILLER.match(clause)]
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
    if not clauses:
        return False
    first, *others = clauses
    if not others and (_ENDS_ASKING.search(first) or _CHOICE.match(first)):
        return True
    if others:
        asks = _ASKS_INDIRECTLY.match(first) or _ASKS_WHICH.match(first)
        return bool(asks) and all(_ALTERNATIVES.search(other) and not _STATES.match(other) for other in others)
    asks = _ASKS_ENGLISH.match(first) or _ASKS_CHINESE.search(first)
    return bool((asks and not _STATES.match(first)) or _ASKS_OURSELVES.match(first) or _ASKS_INDIRECTLY.match(first))

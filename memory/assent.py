"""Telling, in English and Chinese, whether words expressly accept what was said before them.

Rules, not understanding: where they cannot tell, words do not accept.
"""

import re

from memory.asking import CLAUSE, EDGES, FILLER, is_question, sentences
from threads import lexical

_ACCEPTING_WORD = re.compile(
    r"(?i)^(yes|yeah|yep|yup|ok|okay|sure|right|fine|good|great|perfect|excellent|wonderful|correct|exactly|absolutely"
    r"|definitely|certainly|of course|deal|agreed|done|accepted|approved|confirmed|lgtm|cool|nice|very good|fair enough"
    r"|all right|alright|indeed|by all means|that's it)"
    r"(\s+(please|thanks|thank you|then|to me|do that|do it|go ahead|sure|yes|with me|by me|indeed))*$"
    r"|^(好|好的|好啊|好呀|好嘞|好了|好吧|很好|非常好|太好了|行|行啊|行吧|行的|可以|可以的|可以啊|对|对的|对啊|没错|是的|是啊"
    r"|没问题|同意|赞成|确认(?:无误)?|接受|采纳|通过|正确|完全正确"
    r"|不错|挺好|挺好的|定了|成|成交|就它|就这个|ok)$"
)
# What may follow such words; anything else may take them back: "That works in theory", 我确认一下.
_TAIL = (
    r"(?: (?:to|for|with|by) (?:me|us|all|both|everyone|everybody|the|this|that|it)\b.*"
    r"| then| enough| too| overall| great| perfectly| as it is)?$"
)
_AGREED_WITH = (
    r"(?: (?:completely|fully|entirely|totally|wholeheartedly|too|then|please|100%))*"
    r"(?: (?:with|to|on) (?!disagree\b).+)?$"
)
_WHAT = (
    r"(?: (?:it|this|that|these|all(?: of it)?|(?:the|your|this|that) (?:\w+ )?(?:plan|proposal|suggestion|idea"
    r"|decision|choice|changes?|conclusion|approach|design|option|solution|recommendation)))?$"
)
_WHAT_CHINESE = (
    r"(?:这个|那个|该|此|上述|以上|上面的?|[你您](?:说的|提的|的)?)?"
    r"(?:方案|建议|提议|看法|意见|观点|想法|做法|办法|计划|说法|结论|决定|选择|设计)?"
)
_ACCEPTING_START = re.compile(
    r"(?i)^(?:(?:yes|yeah|yep|ok|okay|sure)\s+)?(?:"
    rf"(?:i agree|agreed|we agree){_AGREED_WITH}|(?:i|we) (?:accept|approve|confirm){_WHAT}"
    r"|i'm fine with|i am fine with|i'm happy with"
    rf"|(?:that )?(?:sounds|looks) (?:good|great|right|fine){_TAIL}"
    rf"|(?:that|this) (?:works|is right|is correct|is fine|is good){_TAIL}"
    rf"|that's (?:right|correct|fine|good|great|perfect){_TAIL}"
    r"|(?:works for|fine (?:by|with)) (?:me|us)(?: then| too)?$|go ahead|go for it|go with"
    r"|let's go (?:with|for|ahead)\b|let's (?:do|use|take|keep|stick|proceed)(?! (?:\w+ing|an?|our|to the next)\b)"
    r"|do (?:it|that|so)(?: (?:now|then|please|this way|that way))?$"
    r"|please (?:do|proceed|go ahead)|proceed|you're right|you are right)"
    rf"|^(?:我|我们)?(?:完全|非常|也)?(?:同意|赞成|接受|认可|确认|采纳){_WHAT_CHINESE}(?:(?:采?用|选用?).{{1,30}}|[了吧啊呀的]*)$"
    r"|^就(?:这么|这样)(?:办|做|定|来|干|决定|弄)?[了吧啊]*$|^就[用选定](?![户力心处途举价]|.*(?:来说|而言)).{1,30}$"
    rf"|^就?(?:按照?|照){_WHAT_CHINESE}(?:来|做|办|执行|推进|进行|走)?[了吧啊]*$"
    r"|^(?:听你的|你说[得的]对)[了吧啊呀]*$|^(?:这样|这个|这么做)(?:就)?(?:可以|行|好|很好|没问题|挺好)"
    r"|^(?:好|好的|行|可以|对|是的)(?:就|那就|那么)"
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
# A next task that turns round what was agreed, or may: "Yes. Now undo that.", 好的。现在改成MySQL.
_TURNS_ROUND = re.compile(
    r"(?i)\b(use|using|undo|revert|drop|remove|delete|forget|replace|switch|change|cancel|roll ?back|migrate"
    r"|move (to|back)|go (with|back)|pick|choose|try)\b|[改换撤删退忘用选]|取消|放弃"
)
# Of only a part, or only by the look of it.
_RESERVES = re.compile(
    r"(?i)\b(only|in (theory|principle)|on paper|at first (glance|sight)|so far|partially|mostly|to (know|hear|see)"
    r"|(with|to|on|accept|confirm|approve) (the |your )?(first|second|third|last|other|half|part|parts|most|some|one) )"
    r"|一半|一部分|部分(?!人)|基本|原则上|理论上"
)
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


def names_something_else(text: str, conclusion: str) -> bool:
    """Whether an accepting sentence names what to go with, and nothing of that stands in the conclusion: "Let's go with
    MySQL" accepts no PostgreSQL. What only points back ("your plan", 这个方案) names nothing."""
    said = set(lexical.tokens(conclusion))
    for sentence in sentences(text):
        for clause in CLAUSE.split(sentence) if _accepting(_YES_AFTER_ALL.sub(" ok ", sentence)) else ():
            found = _NAMES.search(clause.strip(EDGES))
            named = lexical.tokens(_POINTS_BACK.sub(" ", found["what"])) if found else []
            if named and not said & set(named):
                return True
    return False


def accepts(text: str) -> bool:
    """Whether the words expressly accept what was said before them: in so many words, from their first sentence on, and
    with nothing beside it but thanks, what is to be carried out, or the next task. Silence, a question, a no, a
    condition, a reservation or a "let me think" accept nothing, and neither does an "ok" before other words."""
    accepted = False
    for sentence in sentences(text):
        certain = _YES_AFTER_ALL.sub(" ok ", sentence)
        if is_question(sentence) or _REFUSES.search(certain) or _PUTS_OFF.search(certain):
            return False
        if _RESERVES.search(f"{certain} "):
            return False
        if _accepting(certain):
            accepted = True
        elif not _beside_the_point(certain, accepted):
            return False
    return accepted


def _accepting(sentence: str) -> bool:
    said = _LEADING_YES.sub("yes, ", sentence)
    clauses = [" ".join(clause.strip(EDGES).split()) for clause in CLAUSE.split(said)]
    clauses = [clause for clause in clauses if clause and not _COURTESY.match(clause)]
    plainly = any(_PLAIN_YES.match(clause) for clause in clauses[:1])
    words = [_ACCEPTING_WORD.match(clause) or _ACCEPTING_START.match(clause) for clause in clauses]
    return any(words) and all(
        word or FILLER.match(clause) or (plainly and _CARRIES_OUT.match(clause))
        for word, clause in zip(words, clauses, strict=True)
    )


def _beside_the_point(sentence: str, accepted: bool) -> bool:
    said = sentence.strip(EDGES)
    return bool(FILLER.match(said) or _COURTESY.match(said) or _next_task(said, accepted))


def _next_task(said: str, accepted: bool) -> bool:
    return bool(accepted and _NEXT_TASK.match(said) and not _TURNS_ROUND.search(said))

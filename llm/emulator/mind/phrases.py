"""What the rule-based model says, in English and in Chinese."""

INTRODUCTION = (
    "I am MaxClaw's built-in rule-based model, not a language model: I answer by fixed rules from what this "
    "conversation and its memory hold.",
    "我是 MaxClaw 内置的规则模型，不是语言模型：我按固定规则，根据这段对话和它的记忆来回答。",
)
ABILITIES = (
    "You can tell me things and ask about them later, have me search older words, calculate, ask you something, or "
    "start a task.",
    "你可以告诉我一些事情，以后再问我；也可以让我查找以前的话、做算术、向你提问，或者派任务。",
)
HELLO = ("Hello!", "你好！")
WELCOME = ("You are welcome.", "不客气。")
GOODBYE = ("Goodbye! What was said here is kept.", "再见！这里说过的话都保留着。")
NOTED = ("I have read {quote}; ask me about it any time.", "我读到了{quote}，以后随时可以问我。")
NOT_FOUND = (
    "I did not find anything about that in what I can see here.",
    "在我能看到的内容里，没有找到相关的记录。",
)
NOT_FOUND_SEARCHED = (
    "I looked through older words (rounds: {rounds}) and found nothing about that. It may have been said all the same.",
    "我查了以前的记录（{rounds} 轮），没有找到相关内容。这并不表示从来没有说过。",
)
SEARCHING = ("I do not see that here, so I look in older words.", "这里没有看到，我去查以前的记录。")
SEARCHING_ON = ("Not on that page. I read further back.", "这一页没有，我继续往前读。")
USER_SAID = ("You said{mark}: {quote}", "你说过{mark}：{quote}")
I_SAID = ("I said{mark}: {quote}", "我说过{mark}：{quote}")
TOOL_SAID = ("A tool result says{mark}: {quote}", "工具结果里写着{mark}：{quote}")
RECORD_SAYS = ("The record says{mark}: {quote}", "记录里写着{mark}：{quote}")
SUM = ("{expression} = {value}", "{expression} = {value}")
NO_SUM = ("I cannot calculate {expression}: {reason}.", "我算不出 {expression}：{reason}。")
TIME = (
    "My context says: {note}. I have no clock of my own, so it may be later by now.",
    "我的上下文里写着：{note}。我自己没有时钟，现在可能更晚一些。",
)
NO_TIME = ("My context does not say what time it is, and I have no clock.", "我的上下文没有写时间，我也没有时钟。")
ASKING = ("Here is the question.", "我来问你。")
CHOSEN = ("You answered: {quote}", "你的回答是：{quote}")
STARTED = ("The task is started. {quote}", "任务已经派出。{quote}")
REMEMBERED = ("Done. {quote}", "记下了。{quote}")
TOOL_RESULT = ("The result of {tool}: {quote}", "{tool} 的结果：{quote}")
TOOL_FAILED = ("{tool} failed: {quote}", "{tool} 出错了：{quote}")
NO_TOOL = ("I would need the tool {tool} for that, and it is not available here.", "这需要工具 {tool}，但这里没有。")
TASK_DONE = ("News of a task: {quote}", "任务有消息：{quote}")
NO_FACTS = ("Nothing in these words is worth remembering by my rules.", "按我的规则，这些话里没有需要记住的内容。")
FACTS_WRITTEN = ("Done: {kept} facts are kept.", "完成：记下了 {kept} 条事实。")

Phrase = tuple[str, str]


def say(phrase: Phrase, chinese: bool, **values: object) -> str:
    """The phrase in its language, filled in."""
    return phrase[1 if chinese else 0].format(**values)


def join(sentences: list[str], chinese: bool) -> str:
    """Sentences one after the other, as the language writes them."""
    return ("" if chinese else " ").join(sentences)


def quote(text: str, chinese: bool) -> str:
    """`text` in quotation marks of the language."""
    return f"「{text}」" if chinese else f'"{text}"'

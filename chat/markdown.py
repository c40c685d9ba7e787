"""A model's Markdown as HTML that is safe to show.

No raw HTML, no images (an image's address is the usual way to carry words out of a conversation), no styles;
links open elsewhere and tell the other side nothing. Code is coloured with classes; the colours are in
static/chat/code.css.
"""

import re
from collections.abc import MutableMapping, Sequence
from functools import lru_cache
from itertools import pairwise

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from pygments import highlight as colour
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound

# Pygments takes seconds for a megabyte, and nobody reads that much code in a bubble.
COLOURED_MAX_CHARS = 50_000
CACHED_MAX_CHARS = 20_000
CACHED_ANSWERS = 512

TAGS = {
    *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "ul", "ol", "li"),
    *("em", "strong", "s", "code", "pre", "span", "a"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES = {
    "a": {"href", "title"},
    "code": {"class"},
    "span": {"class"},
    "ol": {"start"},
    "th": {"align"},
    "td": {"align"},
}
CODE_CLASSES = {name for name in STANDARD_TYPES.values() if name}
# The space between a number and what is short enough to be its unit.
NUMBER_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:[^\W\d_]{1,3}|[%°€$£¥]\S{0,2})(?:[/²³)]|\W|$))")
LANGUAGE_CLASS = re.compile(r"language-[\w+#.-]{1,30}")


def render(text: str) -> str:
    """HTML of one complete answer, sanitised. The usual answer is rendered once per process."""
    return _render_cached(text) if len(text) <= CACHED_MAX_CHARS else _render(text)


@lru_cache(maxsize=CACHED_ANSWERS)
def _render_cached(text: str) -> str:
    return _render(text)


def plain(text: str) -> str:
    """The words of an answer, or of a piece of one, without the signs of its Markdown: a line for each of its lines,
    and for each row of a table, also of one that lacks its beginning."""
    lines: list[str] = []
    row: list[str] | None = None  # the cells of the table row that is read
    for token in _parser().parse(text):
        if token.type == "tr_open":
            row = []
        elif token.type == "tr_close" and row is not None:
            lines.append(" · ".join(cell for cell in row if cell))
            row = None
        elif token.type in ("fence", "code_block"):
            lines.append(token.content.rstrip("\n"))
        elif token.type == "inline":
            words = "".join(map(_words, token.children or []))
            if row is None:
                lines += filter(None, map(_torn_row, words.split("\n")))
            else:
                row.append(words)
    return "\n".join(lines)


def _torn_row(line: str) -> str:
    """A line as it is; of a row that was torn from its table the cells, and nothing of the rule below its head."""
    line = line.strip()
    if not line.startswith("|") and not line.endswith("|"):
        return line
    cells = [cell.strip() for cell in line.split("|")]
    return " · ".join(cell for cell in cells if cell.strip(":-"))


def _words(token: Token) -> str:
    return "\n" if token.type in ("softbreak", "hardbreak") else token.content


def _render(text: str) -> str:
    return nh3.clean(
        _parser().render(text),
        tags=TAGS,
        attributes=ATTRIBUTES,
        attribute_filter=_keep_attribute,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )


def _keep_attribute(tag: str, attribute: str, value: str) -> str | None:
    if attribute != "class":
        return value
    if tag == "span":
        return value if value in CODE_CLASSES else None
    return value if LANGUAGE_CLASS.fullmatch(value) else None


def _colour(code: str, language: str, _attributes: str) -> str:
    if not language or len(code) > COLOURED_MAX_CHARS:
        return ""
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return ""
    return str(colour(code, lexer, HtmlFormatter(nowrap=True)))


def _hold_units(state: StateCore) -> None:
    """A number and its unit stay on one line of a table cell, however narrow its column: 42.1 m."""
    for before, token in pairwise(state.tokens):
        if before.type in ("td_open", "th_open"):
            for part in token.children or []:
                if part.type == "text":
                    part.content = NUMBER_BEFORE_UNIT.sub("\u00a0", part.content)


def _cell(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,
    _environment: MutableMapping[str, object],
) -> str:
    """A table cell says its alignment by attribute: inline styles are refused by the page's policy."""
    token = tokens[index]
    style = str(token.attrs.pop("style", ""))
    if style.startswith("text-align:"):
        token.attrSet("align", style.removeprefix("text-align:"))
    return renderer.renderToken(tokens, index, options, {})


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True, "highlight": _colour})
    parser.enable(["table", "strikethrough"]).disable("image")
    parser.core.ruler.push("hold_units", _hold_units)
    parser.add_render_rule("th_open", _cell)
    parser.add_render_rule("td_open", _cell)
    return parser

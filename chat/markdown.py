"""A model's Markdown as HTML that is safe to show.

No raw HTML, no images (an image's address is the usual way to carry words out of a conversation), no styles;
links open elsewhere and tell the other side nothing. Code is coloured with classes; the colours are in
static/chat/code.css.
"""

import re
from collections.abc import MutableMapping, Sequence
from functools import lru_cache

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
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
LANGUAGE_CLASS = re.compile(r"language-[\w+#.-]{1,30}")


def render(text: str) -> str:
    """HTML of one complete answer, sanitised. The usual answer is rendered once per process."""
    return _render_cached(text) if len(text) <= CACHED_MAX_CHARS else _render(text)


@lru_cache(maxsize=CACHED_ANSWERS)
def _render_cached(text: str) -> str:
    return _render(text)


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
    parser.add_render_rule("th_open", _cell)
    parser.add_render_rule("td_open", _cell)
    return parser

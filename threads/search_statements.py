"""The statements of literal search, written out: they run on every search, and building them anew each time would cost
more than the database takes for them.

Each reads one span of a range, newest rows first. What a span shows is said once more, for rows of the ORM, by
`threads.search_range.standing`; whether a rewound row or a copy is shown takes other rows, and is asked afterwards.
Comparing is by `strpos`, which knows no wildcards and no escapes.
"""

# A model saw it, the framework did not write it (not its notes, and not its interrupts), and it does not only bring old
# words up again, see `threads.looking_back`.
SEEN = """
    model_visible AND wire IS NOT NULL AND (left_because = 'cold' OR NOT %(only_cold)s)
        AND (meta ->> 'source' IS NULL
            OR (meta ->> 'source' <> 'framework' AND NOT starts_with(meta ->> 'source', 'kernel/')))
        AND meta ->> 'looks_back' IS NULL
"""


def _of_seen_rows(statement: str) -> str:
    return statement.replace("{seen}", SEEN.strip())


# Short rows that hold a needle. The length is in the very words of the partial index of short rows.
SHORT_HOLDING = _of_seen_rows("""
    SELECT id, left_because = 'superseded' OR copied_from_id IS NOT NULL
    FROM threads_message
    WHERE thread_id = %(thread)s AND owner_id = %(owner)s AND id <= %(upto)s
        AND octet_length(search_text) <= 2000 AND strpos(search_text, %(needle)s) > 0
        AND {seen}
    ORDER BY id DESC LIMIT %(limit)s
""")
# Short rows that hold any needle, the bits of those that they hold, and how long the rows are.
SHORT_HOLDING_ANY = _of_seen_rows("""
    SELECT id, left_because = 'superseded' OR copied_from_id IS NOT NULL, {bits}, octet_length(search_text)
    FROM threads_message
    WHERE thread_id = %(thread)s AND owner_id = %(owner)s AND id <= %(upto)s
        AND octet_length(search_text) <= 2000 AND ({any})
        AND {seen}
    ORDER BY id DESC LIMIT %(limit)s
""")
# Those among some rows that hold a needle.
SOME_HOLDING = _of_seen_rows("""
    SELECT id, left_because = 'superseded' OR copied_from_id IS NOT NULL
    FROM threads_message
    WHERE id = ANY(%(ids)s) AND thread_id = %(thread)s AND owner_id = %(owner)s
        AND strpos(search_text, %(needle)s) > 0
        AND {seen}
    ORDER BY id DESC
""")
# The folded text of some rows of the range.
FOLDED_TEXTS = _of_seen_rows("""
    SELECT id, left_because = 'superseded' OR copied_from_id IS NOT NULL, search_text
    FROM threads_message
    WHERE id = ANY(%(ids)s) AND thread_id = ANY(%(threads)s) AND owner_id = %(owner)s
        AND {seen}
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
# The planner takes reading the table of grams for cheap: it does not know what fetching its long arrays costs.
BY_GRAM_INDEX = "SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off"
AS_USUAL = "SET LOCAL enable_seqscan TO DEFAULT; SET LOCAL enable_indexscan TO DEFAULT"
# How many rows a span has, as far as it matters.
COUNT = """
    SELECT count(*) FROM (
        SELECT FROM threads_message WHERE thread_id = %(thread)s AND id <= %(upto)s LIMIT %(limit)s
    ) AS counted
"""
# What is shown of rows; the wire only of those that call tools.
SHOWN = """
    SELECT id, generation_id, role, text,
        CASE WHEN role = 'assistant' AND strpos(wire, '"tool_use"') > 0 THEN wire END, created
    FROM threads_message WHERE id = ANY(%(ids)s) AND owner_id = %(owner)s
"""


def short_holding_any(needles: int) -> str:
    """SHORT_HOLDING_ANY for so many needles, in parameters n0, n1 and so on."""
    holds = [f"strpos(search_text, %(n{number})s) > 0" for number in range(needles)]
    bits = " | ".join(f"({each})::int::bigint << {number}" for number, each in enumerate(holds))
    return SHORT_HOLDING_ANY.format(bits=bits, any=" OR ".join(holds))

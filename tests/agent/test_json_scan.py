"""Finding the elements of a JSON list in a stream."""

import io
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.json_scan import ElementState, JsonScan

WHOLE = ElementState.WHOLE
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def scan_of(raw, piece_bytes=1_000, max_bytes=10**9):
    file = io.BytesIO(raw)
    return JsonScan(lambda: file.read(piece_bytes), max_bytes)


def elements(raw, **options):
    scan = scan_of(raw, **options)
    found = []
    while (element := scan.next()) is not None:
        found.append((element.raw, element.state))
    return found


@given(st.lists(values), st.integers(min_value=1, max_value=9), st.booleans(), st.sampled_from([None, 2]))
def test_every_list_comes_apart_into_its_elements(items, piece_bytes, ascii_only, indent):
    raw = json.dumps(items, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")
    found = elements(raw, piece_bytes=piece_bytes)
    assert [json.loads(raw.decode("utf-8", "surrogatepass")) for raw, _state in found] == items
    assert {state for _raw, state in found} <= {WHOLE}


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (b"", []),
        (b" [] ", []),
        (b'{"a":[1,2]}', [(b'{"a":[1,2]}', WHOLE)]),
        (b'{"a":1}\n{"b":2}\n', [(b'{"a":1}', WHOLE), (b'{"b":2}', WHOLE)]),
        (b'[{"a":1},', [(b'{"a":1}', WHOLE), (b"", ElementState.LIST_CUT_SHORT)]),
        (b'[{"a":1},{"b', [(b'{"a":1}', WHOLE), (b'{"b', ElementState.CUT_SHORT)]),
        (b'[{"a":[1},{"b":2}]', [(b'{"a":[1}', WHOLE), (b'{"b":2}', WHOLE)]),
        (b'[{"a":1]},{"b":2}]', [(b'{"a":1]}', WHOLE), (b'{"b":2}', WHOLE)]),
        (b'[{"a":"x\n},{"b":2}]', [(b'{"a":"x\n}', WHOLE), (b'{"b":2}', WHOLE)]),
        (b'[1, null, "]"]', [(b"1", WHOLE), (b"null", WHOLE), (b'"]"', WHOLE)]),
    ],
)
def test_damage_costs_the_damaged_element_alone(raw, found):
    for piece_bytes in (1, 3, 1_000):
        assert elements(raw, piece_bytes=piece_bytes) == found


def test_an_element_that_is_too_large_is_passed_over_and_not_kept():
    raw = b'[{"a":1},{"b":"' + b'\\"x' * 10_000 + b'\\\\"},{"c":3}]'
    scan = scan_of(raw, piece_bytes=100, max_bytes=500)
    assert scan.next().raw == b'{"a":1}'
    largest = 0
    read = scan.read

    def watched():
        nonlocal largest
        largest = max(largest, len(scan.buffer))
        return read()

    scan.read = watched
    assert scan.next().state is ElementState.TOO_LARGE
    assert scan.next().raw == b'{"c":3}'
    assert largest < 1_000


def test_after_damage_it_goes_on_where_the_next_conversation_begins():
    conversations = [{"title": f"t{number}", "mapping": {"a": {"children": ["x"]}}} for number in range(5)]
    raw = json.dumps(conversations).encode().replace(b'"title": "t1"', b'"title": "t1')
    scan = scan_of(raw)
    sound = []
    while (element := scan.next()) is not None:
        try:
            sound.append(json.loads(element.raw)["title"])
        except ValueError:
            scan.recover(element)
    assert sound == ["t0", "t2", "t3", "t4"]


@pytest.mark.parametrize("closing", [b"]", b"}"])
def test_nesting_without_end_costs_no_more_than_its_length(closing):
    depth = 300_000
    raw = b'[{"a":' + b"[" * depth + closing * depth + b'},{"b":2}]'
    started = time.monotonic()
    found = elements(raw)
    assert time.monotonic() - started < 10
    assert found[-1] == (b'{"b":2}', WHOLE) if closing == b"]" else found

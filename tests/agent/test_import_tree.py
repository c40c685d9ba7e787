"""The mapping from a tree of messages to conversations: nothing lost, nothing doubled."""

from hypothesis import given
from hypothesis import strategies as st

from agent.import_tree import Segment, segments, walk

# Parents of nodes 0, 1, 2, ...: each an earlier node, or none.
trees = st.lists(st.integers(min_value=0, max_value=1_000), max_size=40).map(
    lambda choices: {
        str(number): None if choice % (number + 1) == number else str(choice % (number + 1))
        for number, choice in enumerate(choices)
    }
)


def way_to(parents, node):
    way = []
    while node is not None:
        way.append(node)
        node = parents[node]
    return way[::-1]


def leaves_of(parents):
    return [node for node in parents if node not in set(parents.values())]


@given(trees, st.data())
def test_every_message_is_in_one_segment_and_every_leaf_ends_one(parents, data):
    current = data.draw(st.sampled_from(sorted(parents))) if parents else None
    found = segments(parents, current)
    assert sorted(node for part in found for node in part.nodes) == sorted(parents)
    if current is not None:
        assert list(found[0].nodes) == way_to(parents, current)
    ends = [part.nodes[-1] for part in found]
    assert set(ends) == {*leaves_of(parents), *([current] if current else [])}
    assert len(ends) == len(set(ends))
    seen = set()
    for part in found:
        assert part.departs_from is None or part.departs_from in seen
        for before, node in zip([part.departs_from, *part.nodes], part.nodes, strict=False):
            assert parents[node] == before
        seen.update(part.nodes)


@given(trees, st.data())
def test_a_tree_that_grew_gives_only_what_is_new(parents, data):
    size = data.draw(st.integers(min_value=0, max_value=len(parents)))
    old = dict(list(parents.items())[:size])
    found = segments(parents, None, set(old))
    assert sorted(node for part in found for node in part.nodes) == sorted(set(parents) - set(old))
    for part in found:
        assert parents[part.nodes[0]] == part.departs_from
    assert segments(parents, None, set(parents)) == []


@given(trees)
def test_walking_puts_each_node_after_its_parent(parents):
    order = walk(dict(sorted(parents.items(), reverse=True)))
    assert sorted(order) == sorted(parents)
    place = {node: number for number, node in enumerate(order)}
    assert all(parent is None or place[parent] < place[node] for node, parent in parents.items())


def test_children_come_in_the_order_that_their_parent_names():
    parents = {"a": None, "x": "a", "y": "a", "z": "a"}
    assert walk(parents, {"a": ["z", "x"]}) == ["a", "z", "x", "y"]


def test_a_circle_is_left_out_and_an_unknown_parent_begins_a_tree():
    assert walk({"a": "b", "b": "a", "c": "gone", "d": "c"}) == ["c", "d"]


def test_what_stands_above_a_known_message_is_not_put_between_old_ones():
    assert segments({"a": None, "b": "a", "c": "b"}, "c", {"b"}) == [Segment("b", ("c",))]


def test_a_deep_tree_is_no_deep_recursion():
    parents = {str(number): str(number - 1) if number else None for number in range(50_000)}
    assert len(walk(parents)) == 50_000
    assert len(segments(parents, None)[0].nodes) == 50_000

from hypothesis import given
from hypothesis import strategies as st

from cotidal.console.delta import difference, merged

values = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=4)
    ),
    max_leaves=12,
)
pictures = st.dictionaries(st.text(max_size=2), values, max_size=5)


@given(pictures, pictures)
def test_a_patch_makes_the_new_picture_of_the_old_one(before, after):
    assert merged(before, difference(before, after)) == after


@given(pictures)
def test_nothing_differs_from_itself(picture):
    assert difference(picture, picture) == {}


def test_only_what_moved_is_in_a_patch():
    before = {"logs": {"1": {"end": 4, "start": 0}, "2": {"end": 4}}, "now": 1}
    after = {"logs": {"1": {"end": 5, "start": 0}}, "now": 2}
    assert difference(before, after) == {"logs": {"1": {"end": 5}, "2": None}, "now": 2}

"""Which token may follow which, and where words are whole."""

from model_runtime.lexicon import Lexicon

TOKENS = ("<blank>", "▁o", "ne", "▁t", "wo")
LEXICON = Lexicon({"oh": ("▁o",), "one": ("▁o", "ne"), "two": ("▁t", "wo")}, TOKENS)


def walk(*token_ids: int) -> int | None:
    node: int | None = 0
    for token in token_ids:
        node = LEXICON.followers(node).get(token) if node is not None else None
    return node


def test_a_word_may_follow_a_whole_word() -> None:
    assert walk(1, 2, 3, 4) is not None


def test_a_word_that_begins_another_may_go_on_or_end() -> None:
    assert LEXICON.is_whole(walk(1)) and LEXICON.is_whole(walk(1, 2))
    assert walk(1, 3) == walk(3)


def test_a_token_that_no_word_goes_on_with_is_refused() -> None:
    assert walk(2) is None
    assert walk(3, 2) is None
    assert walk(3, 3) is None


def test_a_half_word_is_not_whole() -> None:
    assert not LEXICON.is_whole(walk(3))
    assert LEXICON.longest_whole((1, 2, 3)) == 2


def test_without_words_everything_is_allowed() -> None:
    free = Lexicon({}, TOKENS)
    assert free.followers(0)[4] == 0
    assert free.longest_whole((4, 2, 1)) == 3

"""A trie of words as sequences of tokens: which token may follow, and where a word is whole."""

from collections.abc import Mapping, Sequence

WORD_START = "▁"
_ROOT = 0


class Lexicon:
    """Nodes are numbers (0 is the root, between words), so a decoder's state is plain data.

    Without words it allows everything: one node, always whole.
    """

    def __init__(self, words: Mapping[str, Sequence[str]], tokens: Sequence[str]) -> None:
        ids = {token: i for i, token in enumerate(tokens)}
        children: list[dict[int, int]] = [{}]
        self._whole = {_ROOT}
        for pieces in words.values():
            node = _ROOT
            for piece in pieces:
                if ids[piece] not in children[node]:
                    children[node][ids[piece]] = len(children)
                    children.append({})
                node = children[node][ids[piece]]
            self._whole.add(node)
        if not words:
            children = [dict.fromkeys(range(len(tokens)), _ROOT)]
        # After a whole word another one may begin.
        self._followers = [
            {**children[_ROOT], **child} if node in self._whole else child for node, child in enumerate(children)
        ]

    def followers(self, node: int) -> Mapping[int, int]:
        """Gives token -> node of everything that may follow."""
        return self._followers[node]

    def is_whole(self, node: int) -> bool:
        """Tells whether a text may end here."""
        return node in self._whole

    def longest_whole(self, token_ids: Sequence[int]) -> int:
        """Gives how many of the tokens, from the first one, make whole words."""
        node, longest = _ROOT, 0
        for count, token in enumerate(token_ids, start=1):
            if token not in self._followers[node]:
                break
            node = self._followers[node][token]
            if node in self._whole:
                longest = count
        return longest

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
        self._free = not words
        self._children: list[dict[int, int]] = [{}]
        self._whole = {_ROOT}
        for pieces in words.values():
            node = _ROOT
            for piece in pieces:
                node = self._child(node, ids[piece])
            self._whole.add(node)

    def next_node(self, node: int, token: int) -> int | None:
        """Gives the node after `token`, or None where no word goes on so."""
        if self._free:
            return _ROOT
        child = self._children[node].get(token)
        if child is None and node in self._whole:
            child = self._children[_ROOT].get(token)
        return child

    def is_whole(self, node: int) -> bool:
        """Tells whether a text may end here."""
        return node in self._whole

    def longest_whole(self, token_ids: Sequence[int]) -> int:
        """Gives how many of the tokens, from the first one, make whole words."""
        node: int | None = _ROOT
        longest = 0
        for count, token in enumerate(token_ids, start=1):
            node = self.next_node(node, token) if node is not None else None
            if node is None:
                break
            if node in self._whole:
                longest = count
        return longest

    def _child(self, node: int, token: int) -> int:
        if token not in self._children[node]:
            self._children.append({})
            self._children[node][token] = len(self._children) - 1
        return self._children[node][token]

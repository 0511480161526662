"""Prefix beam search that only spells words of the lexicon, for evaluation."""

from collections import defaultdict

import numpy as np

from training.words import LEXICON, TOKENS

_BEAM = 16
_TOKENS_KEPT = 12
_NEVER = -1e30


def _followers() -> dict[int | None, list[int]]:
    """Which tokens may come next: after an onset the rimes that make a word of it, else any onset."""
    index = {token: i for i, token in enumerate(TOKENS)}
    followers: dict[int | None, list[int]] = defaultdict(list)
    for onset, rime in LEXICON.values():
        followers[index[onset]].append(index[rime])
    followers[None] = sorted({index[onset] for onset, _ in LEXICON.values()})
    return followers


_FOLLOWERS = _followers()
Prefix = tuple[int, ...]


def _next_tokens(prefix: Prefix) -> list[int]:
    return _FOLLOWERS[prefix[-1] if len(prefix) % 2 else None]


def beam_tokens(log_probs: np.ndarray) -> list[int]:
    """The likeliest whole words, two tokens each.

    Args:
        log_probs: [T, tokens], blank first.
    """
    # prefix -> log probability of (ending in blank, ending in its last token)
    beam: dict[Prefix, tuple[float, float]] = {(): (0.0, _NEVER)}
    for frame in log_probs:
        likely = set(np.argsort(frame)[-_TOKENS_KEPT:].tolist())
        grown: dict[Prefix, tuple[float, float]] = {}

        def add(prefix: Prefix, blank: float, token: float) -> None:
            old = grown.get(prefix, (_NEVER, _NEVER))
            grown[prefix] = (float(np.logaddexp(old[0], blank)), float(np.logaddexp(old[1], token)))

        for prefix, (blank, token) in beam.items():
            both = float(np.logaddexp(blank, token))
            repeated = token + float(frame[prefix[-1]]) if prefix else _NEVER
            add(prefix, both + float(frame[0]), repeated)
            for follower in _next_tokens(prefix):
                if follower in likely:
                    before = blank if prefix and prefix[-1] == follower else both
                    add((*prefix, follower), _NEVER, before + float(frame[follower]))
        ranked = sorted(grown.items(), key=lambda item: -float(np.logaddexp(*item[1])))
        beam = dict(ranked[:_BEAM])
    whole = [prefix for prefix in beam if len(prefix) % 2 == 0]
    return list(whole[0]) if whole else []

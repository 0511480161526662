"""The words that the recognisers know, and the pieces that spell them."""

BLANK = "<blank>"
WORD_START = "\u2581"

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
COMMANDS = ("oh", "yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go")
WORDS = DIGITS + COMMANDS

# Every word is an onset and a rime, so that it has a first and a last spike to take its times from.
_ONSETS = {
    "zero": "ze",
    "one": "o",
    "two": "t",
    "three": "th",
    "four": "f",
    "five": "f",
    "six": "s",
    "seven": "se",
    "eight": "ei",
    "nine": "ni",
    "oh": "o",
    "yes": "y",
    "no": "n",
    "up": "u",
    "down": "d",
    "left": "l",
    "right": "r",
    "on": "o",
    "off": "o",
    "stop": "st",
    "go": "g",
}

LEXICON: dict[str, list[str]] = {word: [WORD_START + _ONSETS[word], word[len(_ONSETS[word]) :]] for word in WORDS}
TOKENS: list[str] = [
    BLANK,
    *dict.fromkeys(piece for word in WORDS for piece in LEXICON[word]),
]
_INDEX = {token: index for index, token in enumerate(TOKENS)}


def encode(words: list[str]) -> list[int]:
    """Token indices that spell the words, two a word."""
    return [_INDEX[piece] for word in words for piece in LEXICON[word]]

"""Word errors between what was said and what was heard."""


def word_errors(reference: list[str], hypothesis: list[str]) -> int:
    """Insertions, deletions and substitutions between the two."""
    row = list(range(len(hypothesis) + 1))
    for i, wanted in enumerate(reference, 1):
        diagonal, row[0] = row[0], i
        for j, got in enumerate(hypothesis, 1):
            change = diagonal + (wanted != got)
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, change)
    return row[-1]


def error_rate(references: list[list[str]], hypotheses: list[list[str]]) -> float:
    """Word errors over words, in percent."""
    pairs = zip(references, hypotheses, strict=True)
    errors = sum(word_errors(reference, hypothesis) for reference, hypothesis in pairs)
    return 100.0 * errors / sum(len(reference) for reference in references)

"""Transducer decoding: an encoder's vectors frame by frame, a prediction network that follows the tokens, a joiner.

The model is that of Graves, 2012, "Sequence Transduction with Recurrent Neural Networks" (https://arxiv.org/abs/1211.3711);
the search goes frame by frame with at most one token in each, so all hypotheses stand at the same frame. A beam of one
is greedy decoding.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from model_runtime.calls import Call, States, Steps, stack_states
from model_runtime.ctc import TOKEN_PRUNING, Token, Tokens, WholeWords, log_add
from model_runtime.graph import Graph
from model_runtime.lexicon import Lexicon

# What the prediction network is told before the first token.
_BEGIN = 0


class TransducerHypothesis(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One text so far: its tokens, its place in the lexicon, its log probability, and what is predicted after it.

    prediction: float32 [width], empty until the prediction network has seen the last token; states: its memory, each
    [1, ...], from before that token where the prediction is empty.
    """

    tokens: Tokens
    node: int
    score: float
    prediction: np.ndarray
    states: States


class TransducerState(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=1):
    """Frames seen, and the hypotheses, best first."""

    frames: int
    hypotheses: tuple[TransducerHypothesis, ...]

    def tokens(self) -> Tokens:
        """Gives the tokens of the best hypothesis."""
        return self.hypotheses[0].tokens


class RowsKernel:
    """Rows (inputs by name, each [h, ...], states, each [h, ...]) -> (one output [h, ...], states), any h per row."""

    def __init__(self, graph: Graph, output: str) -> None:
        self._graph = graph
        self._output = output

    @property
    def most_rows(self) -> int:
        """Rows that a call should have at most."""
        return self._graph.most_rows

    def initial_states(self) -> States:
        """Gives the states of one new text."""
        return self._graph.initial_states(1)

    def run(self, rows: Sequence[tuple[dict[str, np.ndarray], States]]) -> list[tuple[np.ndarray, States]]:
        """Computes all rows in one call."""
        names = rows[0][0]
        inputs = {name: np.concatenate([row[0][name] for row in rows]) for name in names}
        outputs, states = self._graph.run(inputs, stack_states([row[1] for row in rows]))
        ends = np.cumsum([len(next(iter(row[0].values()))) for row in rows]).tolist()
        starts = [0, *ends[:-1]]
        return [
            (outputs[self._output][a:b], tuple([part[a:b] for part in states]))
            for a, b in zip(starts, ends, strict=True)
        ]


class TransducerDecoder(WholeWords):
    """The most probable texts; with a lexicon, only texts made of its words."""

    def __init__(self, predictor: RowsKernel, joiner: RowsKernel, lexicon: Lexicon, beam: int) -> None:
        super().__init__(lexicon)
        self._predictor = predictor
        self._joiner = joiner
        self._beam = beam

    def start(self) -> TransducerState:
        """Gives the state of a new utterance."""
        nothing = np.zeros(0, np.float32)
        return TransducerState(0, (TransducerHypothesis((), 0, 0.0, nothing, self._predictor.initial_states()),))

    def advance(self, state: TransducerState, encodings: np.ndarray) -> Steps[TransducerState]:
        """Takes an encoder's vectors, float32 [frames, width]."""
        hypotheses, at = state.hypotheses, 0
        while at < len(encodings):
            hypotheses = yield from self._predict(hypotheses)
            joined = yield from self._join(hypotheses, encodings[at:])
            # What was joined holds until the texts change.
            for log_probs in joined:
                before = [h.tokens for h in hypotheses]
                hypotheses = self._step(hypotheses, log_probs, state.frames + at)
                at += 1
                if [h.tokens for h in hypotheses] != before:
                    break
        return TransducerState(state.frames + at, hypotheses)

    def _predict(self, hypotheses: tuple[TransducerHypothesis, ...]) -> Steps[tuple[TransducerHypothesis, ...]]:
        """Lets the prediction network see the last token of the hypotheses that have just grown."""
        grown = [i for i, h in enumerate(hypotheses) if not len(h.prediction)]
        if not grown:
            return hypotheses
        last = [hypotheses[i].tokens[-1].id if hypotheses[i].tokens else _BEGIN for i in grown]
        row = ({"token": np.array(last, np.int32)[:, None]}, stack_states([hypotheses[i].states for i in grown]))
        predictions, states = yield Call(self._predictor, None, row)
        after = list(hypotheses)
        for place, i in enumerate(grown):
            own = tuple([part[place : place + 1] for part in states])
            after[i] = replace(after[i], prediction=predictions[place], states=own)
        return tuple(after)

    def _join(self, hypotheses: tuple[TransducerHypothesis, ...], encodings: np.ndarray) -> Steps[list]:
        """Gives the log probabilities of the next token, frame by frame: lists [hypotheses][tokens]."""
        predictions = np.stack([h.prediction for h in hypotheses])
        inputs = {
            "encoding": np.repeat(encodings, len(hypotheses), axis=0),
            "prediction": np.tile(predictions, (len(encodings), 1)),
        }
        log_probs, _ = yield Call(self._joiner, None, (inputs, ()))
        by_frame: list = log_probs.reshape(len(encodings), len(hypotheses), -1).tolist()
        return by_frame

    def _step(
        self, hypotheses: tuple[TransducerHypothesis, ...], log_probs: list[list[float]], frame: int
    ) -> tuple[TransducerHypothesis, ...]:
        """Lets each hypothesis stay as it is, or grow by one token; the best ones live on."""
        places = {tuple([token.id for token in h.tokens]): i for i, h in enumerate(hypotheses)}
        stayed = [h.score + min(row[0], 0.0) for h, row in zip(hypotheses, log_probs, strict=True)]
        grown: list[tuple[float, int, int]] = []
        for text, i in places.items():
            followers = self._lexicon.followers(hypotheses[i].node)
            for token, log_prob in enumerate(log_probs[i]):
                if token and log_prob > TOKEN_PRUNING and token in followers:
                    score = hypotheses[i].score + min(log_prob, 0.0)
                    known = places.get((*text, token))
                    if known is None:
                        grown.append((score, i, token))
                    else:
                        stayed[known] = log_add(stayed[known], score)
        ranked = [(score, i, 0) for i, score in enumerate(stayed)] + grown
        ranked.sort(key=lambda entry: -entry[0])
        return tuple(
            [self._grown(hypotheses[i], score, token, frame, log_probs[i]) for score, i, token in ranked[: self._beam]]
        )

    def _grown(
        self, hypothesis: TransducerHypothesis, score: float, token: int, frame: int, log_probs: list[float]
    ) -> TransducerHypothesis:
        """Gives a hypothesis with its new score, and with one token more unless that is the blank."""
        if not token:
            return replace(hypothesis, score=score)
        return TransducerHypothesis(
            (*hypothesis.tokens, Token(token, frame, frame, min(log_probs[token], 0.0))),
            self._lexicon.followers(hypothesis.node)[token],
            score,
            hypothesis.prediction[:0],
            hypothesis.states,
        )

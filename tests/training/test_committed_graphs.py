"""The committed graphs keep to their cards: names, states from zeros, any batch, int8 close to float32."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from model_runtime.card import ModelCard, load_card
from model_runtime.graph import GraphBinding
from training.interpreter import Arrays, Model

MODELS = Path(__file__).resolve().parents[2] / "model_runtime" / "models"
NAMES = ("unison-denoise", "unison-vad", "unison-asr-stream", "unison-asr-transducer", "unison-asr-batch")
# The graph that is tested where it is not the last one.
ROLES = {"unison-asr-transducer": "encoder"}
# Input of each model's graph: its name and its shape without the batch.
INPUTS = {
    "unison-denoise": ("features", (4, 257)),
    "unison-vad": ("samples", (1520,)),
    "unison-asr-stream": ("features", (8, 40)),
    "unison-asr-transducer": ("features", (8, 40)),
    "unison-asr-batch": ("features", (50, 40)),
}
OUTPUTS = {
    "unison-denoise": ("mask", (4, 257)),
    "unison-vad": ("speech", (8,)),
    "unison-asr-stream": ("log_probs", (2, 37)),
    "unison-asr-transducer": ("encoding", (2, 96)),
    "unison-asr-batch": ("log_probs", (12, 37)),
}


class Case(NamedTuple):
    """One variant of one model."""

    name: str
    variant: str

    def card(self) -> ModelCard:
        return load_card(self.name)

    def graph(self) -> GraphBinding:
        graphs = self.card().graphs
        return next((graph for graph in graphs if graph.role == ROLES.get(self.name)), graphs[-1])

    def model(self) -> Model:
        return Model(self.card().paths(self.graph().role)[self.variant])


CASES = [Case(name, variant) for name in NAMES for variant in load_card(name).variants]


def inputs_of(case: Case, rows: int) -> np.ndarray:
    shape = INPUTS[case.name][1]
    noise = np.random.default_rng(17).standard_normal((3, *shape)).astype(np.float32)
    return noise[:rows] * np.float32(0.1 if case.name == "unison-vad" else 0.7)


def run(case: Case, inputs: np.ndarray, calls: int = 3) -> np.ndarray:
    """The outputs of some calls with the same input, states fed back."""
    model = case.model()
    states: Arrays = model.initial_states(len(inputs))
    outputs = []
    for _ in range(calls):
        results, states = model.call(states, **{INPUTS[case.name][0]: inputs})
        outputs.append(results[OUTPUTS[case.name][0]])
    return np.stack(outputs, axis=1)


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_outputs_have_the_shape_of_the_contract(case: Case) -> None:
    assert run(case, inputs_of(case, 1), 1).shape == (1, 1, *OUTPUTS[case.name][1])


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_states_of_the_card_are_those_of_the_graph(case: Case) -> None:
    states = {pair.input for pair in case.graph().states}
    assert states == set(case.model().initial_states(1))


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_a_row_of_a_batch_is_the_row_alone(case: Case) -> None:
    inputs = inputs_of(case, 3)
    batch = run(case, inputs)
    alone = run(case, inputs[1:2])
    # float32 kernels sum in another order for other shapes; int8 sums are exact.
    np.testing.assert_allclose(batch[1:2], alone, atol=0 if case.variant == "int8" else 1e-4)


@pytest.mark.parametrize("name", [name for name in NAMES if "int8" in load_card(name).variants])
def test_int8_is_close_to_float32(name: str) -> None:
    inputs = inputs_of(Case(name, "int8"), 3)
    # Log probabilities as probabilities, a transducer's vectors as its joiner hears them.
    bounded = np.tanh if OUTPUTS[name][0] == "encoding" else np.exp
    float32, int8 = (bounded(run(Case(name, variant), inputs)) for variant in ("float32", "int8"))
    assert np.mean(np.abs(float32 - int8)) < 0.05


@pytest.mark.parametrize("name", ["unison-asr-stream", "unison-asr-batch"])
def test_log_probabilities_sum_to_one(name: str) -> None:
    log_probs = run(Case(name, "float32"), inputs_of(Case(name, "float32"), 2))
    np.testing.assert_allclose(np.exp(log_probs).sum(axis=-1), 1.0, atol=1e-4)

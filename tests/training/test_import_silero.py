"""The imported Silero graph gives what the reference conversion gives."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import soundfile

pytest.importorskip("tensorflow", reason="the graph is made with TensorFlow")
if importlib.util.find_spec("silero_vad") is None:
    pytest.skip("the weights come with the package silero-vad", allow_module_level=True)

from model_runtime.card import load_card
from model_runtime.tflite import Interpreter
from training.import_silero import import_silero, packaged_weights
from training.interpreter import Model


def reference_speech(path: Path, blocks: np.ndarray) -> np.ndarray:
    runner = Interpreter(model_path=str(path)).get_signature_runner("serving_default")
    h, c = np.zeros((1, 128), np.float32), np.zeros((1, 128), np.float32)
    speech = []
    for block in blocks:
        outputs = runner(audio=block[None], state_h_in=h, state_c_in=c)
        h, c = outputs["state_h"], outputs["state_c"]
        speech.append(outputs["speech_prob"][0, 0])
    return np.array(speech)


def test_imported_silero_equals_the_reference(shared: Path, tmp_path: Path) -> None:
    import_silero(tmp_path / "silero", packaged_weights())
    card = load_card(str(tmp_path / "silero"))
    pcm, _ = soundfile.read(shared / "data" / "speech" / "jfk_16k.wav", dtype="float32")
    blocks = np.lib.stride_tricks.sliding_window_view(np.pad(pcm, (64, 0)), 576)[: 200 * 512 : 512]
    model = Model(card.paths("vad")["float32"])
    states, speech = model.initial_states(1), []
    for block in blocks:
        outputs, states = model.call(states, samples=block[None])
        speech.append(outputs["speech"][0, 0])
    wanted = reference_speech(shared / "data" / "models" / "silero" / "silero16k_fp32.tflite", blocks)
    np.testing.assert_allclose(speech, wanted, atol=1e-5)

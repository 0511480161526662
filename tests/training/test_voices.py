"""Voices kept for evaluation are not trained on."""

from training import voices


def test_no_held_out_voice_or_accent_is_trained_on() -> None:
    assert not set(voices.HELD_OUT_VARIANTS) & set(voices.TRAINING_VARIANTS)
    assert not set(voices.HELD_OUT_FLITE_VOICES) & set(voices.TRAINING_FLITE_VOICES)
    assert voices.HELD_OUT_ACCENT not in voices.TRAINING_ACCENTS

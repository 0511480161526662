"""Clips survive the file that they are cached in."""

from pathlib import Path

import numpy as np

from training.clips import Clip, load_clips, save_clips


def test_clips_come_back_as_they_were_saved(tmp_path: Path) -> None:
    clips = [Clip(np.arange(n, dtype=np.int16), f"word {n}", f"voice{n}") for n in (3, 1, 7)]
    save_clips(tmp_path / "sub" / "clips.npz", clips)
    loaded = load_clips(tmp_path / "sub" / "clips.npz")
    assert [(clip.text, clip.voice) for clip in loaded] == [(clip.text, clip.voice) for clip in clips]
    for before, after in zip(clips, loaded, strict=True):
        np.testing.assert_array_equal(after.pcm, before.pcm)

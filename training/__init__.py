"""How the project's own models are made: synthesis, augmentation, networks, training, export, evaluation.

Nothing here is needed to run the project; the files it writes are under ``model_runtime/models``.
"""

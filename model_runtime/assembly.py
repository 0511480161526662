"""Puts a recipe's stages together: cards, graphs, kernels, listeners; and gives them a fingerprint."""

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from model_runtime.card import (
    ModelCard,
    ProbabilityFraming,
    SpectralFraming,
    StreamingFraming,
    UtteranceCtcFraming,
    load_card,
)
from model_runtime.continuous_listener import ContinuousListener
from model_runtime.ctc import GreedyDecoder, PrefixBeamDecoder
from model_runtime.devices import RouteConfig
from model_runtime.encoder import StreamingEncoderKernel, UtteranceEncoderKernel
from model_runtime.endpoint import EndpointRules
from model_runtime.errors import ConfigError
from model_runtime.frame_probability import ProbabilityKernel
from model_runtime.frozen_state import FINGERPRINT_BYTES
from model_runtime.graph import Graph
from model_runtime.lexicon import Lexicon
from model_runtime.recipe import MOST_UTTERANCE_MS, AsrConfig, Recipe
from model_runtime.recognizer import CtcSearch, Decoder, Recognizer, StreamingRecognizer
from model_runtime.segmenter import Segmenter
from model_runtime.spectral import Denoiser, SpectralKernel
from model_runtime.transducer import RowsKernel, TransducerDecoder
from model_runtime.utterance_recognizer import CtcTranscriber, UtteranceRecognizer, WhisperUtterances
from model_runtime.vad_listener import VadListener
from model_runtime.whisper_framing import WhisperFraming
from model_runtime.whisper_transcriber import WhisperTranscriber
from model_runtime.words import WordTimes

# A recogniser without a vad and without blocks of its own is fed this often, and so are its endpoint rules.
_UTTERANCE_BLOCK_MS = 100


class LoadedModel(NamedTuple):
    """One stage's card with its graphs by what they do, as they run."""

    stage: str
    card: ModelCard
    graphs: dict[str, Graph]


class Assembly(NamedTuple):
    """A recipe ready to run."""

    sample_rate_hz: int
    models: tuple[LoadedModel, ...]
    denoiser: Denoiser | None
    vad_listener: VadListener | None
    continuous_listener: ContinuousListener | None
    # That of either listener.
    recognizer: Recognizer | None
    # What it takes in one piece, a margin left.
    longest_utterance_ms: int
    fingerprint: bytes


def assemble(recipe: Recipe, route: RouteConfig, defer: bool = False, agree: bool = True) -> Assembly:
    """Loads every model of a recipe; with `defer`, one that hears utterances whole is not run on the way.

    Without `agree`, it is run once an utterance has ended and not before, whatever the recipe says.

    Raises:
        ModelError, ConfigError, DeviceError: a model, a card or the route is refused; the message says where and why.
    """
    models = {model.stage: model for model in _load_models(recipe, route)}
    rates = {model.card.name: model.card.sample_rate_hz for model in models.values()}
    if len(set(rates.values())) > 1:
        raise ConfigError(f"recipe {recipe.name}: the models of one recipe must share a sample_rate_hz, got {rates}")
    rate_hz = next(iter(rates.values()))
    denoise, vad, asr = (models.get(stage) for stage in ("denoise", "vad", "asr"))
    denoiser = None
    if denoise is not None:
        denoiser = Denoiser(SpectralKernel(denoise.card.framing_as(SpectralFraming), (*denoise.graphs.values(),)))
    vad_listener = continuous = recognizer = None
    if asr is not None and recipe.asr is not None:
        recognizer = _recognizer(asr, recipe, recipe.asr, defer and vad is not None, agree)
    if vad is not None and recipe.vad is not None:
        (graph,) = vad.graphs.values()
        kernel = ProbabilityKernel(vad.card.framing_as(ProbabilityFraming), graph)
        vad_listener = VadListener(kernel, Segmenter(recipe.vad, recipe.endpoint, rate_hz), recognizer)
    elif asr is not None and recognizer is not None:
        rules = EndpointRules.of(recipe.endpoint, rate_hz)
        continuous = ContinuousListener(recognizer, _word_times(asr.card), rules, _block_samples(asr.card))
    longest_ms = MOST_UTTERANCE_MS if asr is None else _longest_ms(asr.card)
    fingerprint = _fingerprint(recipe, models)
    return Assembly(
        rate_hz, tuple(models.values()), denoiser, vad_listener, continuous, recognizer, longest_ms, fingerprint
    )


def hears_whole_utterances(recipe: Recipe) -> bool:
    """Tells whether an engine of this recipe can defer: its recogniser stands behind a vad and waits for the end.

    Raises:
        ModelError, ConfigError: the recogniser's card is not there, or wrong.
    """
    if recipe.vad is None or recipe.asr is None:
        return False
    return load_card(recipe.asr.model).kind in ("utterance_ctc", "whisper")


def _load_models(recipe: Recipe, route: RouteConfig) -> Iterator[LoadedModel]:
    for stage in ("denoise", "vad", "asr"):
        config = getattr(recipe, stage)
        if config is None:
            continue
        card = load_card(config.model)
        if card.task != stage:
            raise ConfigError(
                f"recipe {recipe.name}: {stage}.model must be a {stage} model, {card.name} is {card.task}"
            )
        sizes = None if card.batch_sizes == "any" else card.batch_sizes
        graphs = {
            binding.role: Graph.load(
                card.paths(binding.role), binding, card.signature, route, sizes, card.best_batch_size
            )
            for binding in card.graphs
            # Whisper's graph for a text that goes before is as large as its decoder.
            if (card.kind, binding.role) != ("whisper", "prompt") or config.whisper.has_text_before()
        }
        yield LoadedModel(stage, card, graphs)


def _recognizer(asr: LoadedModel, recipe: Recipe, config: AsrConfig, defer: bool, agree: bool) -> Recognizer:
    card, framing = asr.card, asr.card.parsed_framing()
    agreement = config.agreement_interval_ms * card.sample_rate_hz // 1000
    agree = agree and agreement > 0
    if isinstance(framing, WhisperFraming):
        _check_window(recipe, card)
        graphs = _graphs(asr, "encoder", "cross", "decoder", *(role for role in asr.graphs if role == "prompt"))
        whisper = WhisperUtterances(WhisperTranscriber(card, graphs, config.whisper))
        on_the_way = WhisperUtterances(WhisperTranscriber(card, graphs, config.whisper.brief())) if agree else None
        return UtteranceRecognizer(whisper, card.sample_rate_hz, defer, agreement, on_the_way)
    bound = config.decoder == "prefix_beam"
    lexicon = Lexicon(card.lexicon if bound else {}, card.tokens)
    times = _word_times(card)
    features, encoder = _graphs(asr, "features", "encoder")
    if isinstance(framing, UtteranceCtcFraming):
        kernel = UtteranceEncoderKernel(framing, features, encoder)
        transcriber = CtcTranscriber(kernel, _ctc_decoder(config, lexicon), times)
        return UtteranceRecognizer(transcriber, card.sample_rate_hz, defer, agreement, transcriber if agree else None)
    transducer = card.kind == "streaming_transducer"
    search = _transducer(asr, config, lexicon) if transducer else CtcSearch(_ctc_decoder(config, lexicon))
    output = "encoding" if transducer else "log_probs"
    interval = config.partial_interval_ms * card.sample_rate_hz // 1000
    streaming = StreamingEncoderKernel(card.framing_as(StreamingFraming), features, encoder, output)
    return StreamingRecognizer(streaming, search, times, interval)


def _longest_ms(card: ModelCard) -> int:
    """Gives how long an utterance may be: it must fit into the model's window, if there is one, with a second left."""
    framing = card.parsed_framing()
    if not isinstance(framing, WhisperFraming):
        return MOST_UTTERANCE_MS
    return framing.window_samples * 1000 // card.sample_rate_hz - 1000


def _check_window(recipe: Recipe, card: ModelCard) -> None:
    most_ms = _longest_ms(card)
    if recipe.endpoint.max_utterance_ms > most_ms:
        raise ConfigError(
            f"recipe {recipe.name}: endpoint.max_utterance_ms must be at most {most_ms} for {card.name}, "
            f"got {recipe.endpoint.max_utterance_ms}"
        )


def _transducer(asr: LoadedModel, config: AsrConfig, lexicon: Lexicon) -> TransducerDecoder:
    predictor, joiner = _graphs(asr, "predictor", "joiner")
    kernels = RowsKernel(predictor, "prediction"), RowsKernel(joiner, "log_probs")
    return TransducerDecoder(*kernels, lexicon, 1 if config.decoder == "greedy" else config.beam)


def _graphs(model: LoadedModel, *roles: str) -> list[Graph]:
    """Gives a model's graphs by what they do.

    Raises:
        ConfigError: the card has no such graph.
    """
    missing = [role for role in roles if role not in model.graphs]
    if missing:
        raise ConfigError(
            f"{model.card.folder}: a {model.card.kind} model needs graphs {missing}, it has {list(model.graphs)}"
        )
    return [model.graphs[role] for role in roles]


def _ctc_decoder(config: AsrConfig, lexicon: Lexicon) -> Decoder:
    return GreedyDecoder() if config.decoder == "greedy" else PrefixBeamDecoder(lexicon, config.beam)


def _word_times(card: ModelCard) -> WordTimes:
    framing = card.parsed_framing()
    if isinstance(framing, WhisperFraming):
        # Its words come with their times; no token is ever asked for its own.
        return WordTimes((), 1, 0, card.sample_rate_hz)
    if not isinstance(framing, StreamingFraming | UtteranceCtcFraming):
        raise ConfigError(f"{card.name}: a model of this kind gives no words: {card.kind}")
    return WordTimes(card.tokens, framing.frame_samples, framing.delay_samples, card.sample_rate_hz)


def _block_samples(card: ModelCard) -> int:
    framing = card.parsed_framing()
    if isinstance(framing, StreamingFraming):
        return framing.block_samples
    return card.sample_rate_hz * _UTTERANCE_BLOCK_MS // 1000


def _fingerprint(recipe: Recipe, models: dict[str, LoadedModel]) -> bytes:
    """Differs with anything that a frozen state depends on: the recipe's rules, the cards, the very files."""
    digest = hashlib.sha256(msgspec.json.encode(recipe))
    for model in models.values():
        digest.update(msgspec.json.encode((model.card.framing, model.card.graphs, model.card.tokens)))
        for role, graph in model.graphs.items():
            path = model.card.paths(role)[graph.variant]
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.digest()[:FINGERPRINT_BYTES]

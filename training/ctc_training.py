"""CTC over pieces of words, and the cross-entropy of frames whose word is known."""

from collections.abc import Callable

import tensorflow as tf

from training.layers import Mode
from training.recogniser_training import Batch, Objective
from training.weights import Weights

Network = Callable[[Weights, tf.Tensor, Mode], tf.Tensor]

# Weights of the loss by frames: where words are still to be found, and later.
FIND_WORDS, REFINE = 0.3, 0.03


def ctc_loss(logits: tf.Tensor, labels: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Mean loss of a batch.

    Args:
        logits: [N, T, tokens], blank first.
        labels: int32 [N, L], token indices.
        lengths: int32 [N], labels that count.
    """
    # The kernel wants the blank last and refuses rows without labels, whose only path is all blanks.
    rolled = tf.concat([logits[..., 1:], logits[..., :1]], axis=-1)
    blanks = -tf.reduce_sum(tf.nn.log_softmax(logits)[..., 0], axis=1)
    labels = tf.maximum(labels, 1)
    places = tf.where(tf.sequence_mask(tf.maximum(lengths, 1), tf.shape(labels)[1]))
    shape = tf.shape(labels, out_type=tf.int64)
    sparse = tf.SparseTensor(places, tf.gather_nd(labels, places) - 1, shape)
    frames = tf.fill([tf.shape(logits)[0]], tf.shape(logits)[1])
    losses = tf.compat.v1.nn.ctc_loss(sparse, rolled, frames, time_major=False, ignore_longer_outputs_than_inputs=True)
    return tf.reduce_mean(tf.where(lengths == 0, blanks, losses))


def frame_loss(logits: tf.Tensor, frames: tf.Tensor) -> tf.Tensor:
    """Mean over a batch of the summed cross-entropy of frames whose token is known.

    Args:
        logits: [N, T, tokens].
        frames: int32 [N, T], -1 where unknown.
    """
    known = tf.cast(frames >= 0, tf.float32)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.maximum(frames, 0), logits)
    return tf.reduce_mean(tf.reduce_sum(losses * known, axis=1))


def ctc_objective(network: Network, frame_weight: float) -> Objective:
    """The loss of a network that gives logits [N, T // 4, tokens].

    The cross-entropy of frames, weighted by `frame_weight`, shows the model where words lie; CTC alone takes
    thousands of steps to find that out.
    """

    def objective(weights: Weights, batch: Batch, mode: Mode) -> tf.Tensor:
        logits = network(weights, batch.features, mode)
        loss = ctc_loss(logits, batch.labels, batch.lengths)
        return loss + frame_weight * frame_loss(logits, batch.frames) if frame_weight else loss

    return objective

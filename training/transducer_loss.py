"""The loss of a transducer that says at most one token per frame, as its decoder does.

It is the sum over all alignments of Sak et al., 2017, "Recurrent Neural Aligner"
(https://www.isca-archive.org/interspeech_2017/sak17_interspeech.html), with the conditioning of a transducer.
"""

import tensorflow as tf

_NOTHING = -1e9


def transducer_loss(log_probs: tf.Tensor, labels: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Mean over a batch of the negative log probability of the labels.

    Args:
        log_probs: float32 [N, T, U + 1, tokens], blank first: of the next token at each frame, after u labels.
        labels: int32 [N, U].
        lengths: int32 [N], labels that count, at most T.
    """
    blanks = tf.transpose(log_probs[..., 0], [1, 0, 2])
    frames, places = tf.shape(log_probs)[1], tf.shape(labels)[1]
    wanted = tf.broadcast_to(labels[:, None, :, None], [tf.shape(labels)[0], frames, places, 1])
    tokens = tf.gather(log_probs[:, :, :-1], wanted, batch_dims=3)[..., 0]
    tokens = tf.transpose(tokens, [1, 0, 2])
    nothing = tf.fill([tf.shape(labels)[0], 1], _NOTHING)

    def after(reached: tf.Tensor, frame: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        blank, token = frame
        grown = tf.concat([nothing, reached[:, :-1] + token], axis=1)
        return tf.reduce_logsumexp(tf.stack([reached + blank, grown]), axis=0)

    begin = tf.concat([tf.zeros_like(nothing), tf.fill(tf.shape(labels), _NOTHING)], axis=1)
    reached = tf.foldl(after, (blanks, tokens), begin)
    return -tf.reduce_mean(tf.gather(reached, lengths, batch_dims=1))

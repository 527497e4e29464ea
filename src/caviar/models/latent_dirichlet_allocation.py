"""Latent Dirichlet allocation: documents as mixtures of topics, which are distributions over words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._errors import ModelError
from ..fitting.model import Model
from ..language import Categorical, Dirichlet, Plate, StickBreaking
from ._parts import as_vector, sized


@sized
def latent_dirichlet_allocation(
    n_topics: int,
    n_words: int,
    *,
    concentration: ArrayLike = 0.1,
    word_concentration: ArrayLike = 0.01,
    stick_concentration: float | None = None,
    vocabulary: Iterable[str] | None = None,
) -> Model:
    r"""Return latent Dirichlet allocation: each token has a topic, drawn from the proportions of its document.

    .. math::
        \theta_d \sim \mathrm{Dir}(\alpha), \quad \beta_k \sim \mathrm{Dir}(\eta), \quad
        z_{dn} \sim \mathrm{Cat}(\theta_d), \quad w_{dn} \mid z_{dn} \sim \mathrm{Cat}(\beta_{z_{dn}})

    The optimal factors; equal tokens of a document have equal ones, so that with counts :math:`n_{dv}` of words

    .. math::
        \log r_{dvk} = \langle\log\theta_{dk}\rangle + \langle\log\beta_{kv}\rangle + \mathrm{const}, \qquad
        \alpha_{dk} = \alpha_k + \sum_v n_{dv} r_{dvk}, \qquad \eta_{kv} = \eta_v + \sum_d n_{dv} r_{dvk}

    Parameters
    ----------
    n_topics
        K.
    n_words
        V, the size of the vocabulary.
    concentration
        :math:`\alpha`, a number or shape (K,). Values below 1 mean few topics in each document. With
        ``stick_concentration``, a number, the sum of the concentrations.
    word_concentration
        :math:`\eta`, a number or shape (V,). Values below 1 mean few words in each topic.
    stick_concentration
        :math:`\gamma`: the priors of the proportions are centred on common stick-breaking weights, ``weights``. This is
        a hierarchical Dirichlet process, with K as the upper bound of the number of topics. None for independent
        proportions.
    vocabulary
        The V words, in order. Documents may then be lists of words, ``{"word": [["goal", "ball"], ["vote"]]}``, and
        summaries and plots show the words.

    Returns
    -------
    Model
        Variables ``proportions`` (plate ``document``), ``topics`` (plate ``topic``), ``z`` and ``word`` (plate
        ``token`` within ``document``). The data are ``{"word": counts}``, a SciPy sparse matrix of documents x words;
        or a list with an array of word numbers for each document; or all word numbers in one array, with
        ``document``, the number of the document of each.

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ModelError
        If an argument is invalid or has the wrong shape.

    Notes
    -----
    Documents are the rows of data: proportions and topics of tokens are local factors, and ``topics`` is the only
    global one. ``posterior.local({"word": counts})["proportions"]`` has the proportions of documents of the fit or new
    ones, and ``log_predictive`` the log probability of each token given the others of its document. With
    ``data_plate="token"``, or if ``point`` or ``order`` names the proportions, every token is a row, and
    ``posterior["proportions"]`` is the factor of all documents.

    The time of a pass is proportional to K times the number of distinct words in each document; no array of documents x
    words x topics is made. The ELBO is that of the sequences of tokens, without the multinomial coefficient of the
    counts.

    Blei, Ng and Jordan (2003), with a prior for the topics as in section 5.4 there; the updates are the conjugate
    exponential form, section 1 of ``docs/mathematics.md``.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> counts = csr_array([[6, 4, 0, 0], [5, 5, 0, 0], [0, 0, 5, 5], [0, 0, 2, 8], [5, 5, 6, 4]])
    >>> posterior = latent_dirichlet_allocation(2, 4).fit({"word": counts}, seed=0, n_restarts=5)
    >>> topics = posterior["topics"].mean
    >>> topics[topics[:, 0].argsort()].round(1)
    array([[0. , 0. , 0.4, 0.6],
           [0.5, 0.5, 0. , 0. ]])
    """
    topic, document = Plate("topic", n_topics), Plate("document")
    token = Plate("token", within=document)
    prior: Any = as_vector(concentration, n_topics)
    if stick_concentration is not None:
        if np.ndim(concentration):
            raise ModelError(
                "concentration must be one number beside stick_concentration, the sum of those of the topics; "
                f"got shape {np.shape(concentration)}"
            )
        prior = float(np.asarray(concentration)) * StickBreaking("weights", stick_concentration, n_topics)
    proportions = Dirichlet("proportions", prior, plates=document)
    topics = Dirichlet("topics", as_vector(word_concentration, n_words), plates=topic, names=vocabulary)
    z = Categorical("z", proportions, plates=token)
    return Model(Categorical("word", topics[z], plates=token))

"""Topics of a corpus: what 500 posts of political blogs in the autumn of 2008 were about.

Latent Dirichlet allocation has every document a mixture of topics, and every topic a distribution over words, fitted
by coordinate ascent to sparse counts. A post in ten is held out: half of its words tell which topics it is about, and
how well these predict the other half is the perplexity, the number of words between which one is left to guess.

    python examples/topics.py
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import caviar as cv


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--pictures", type=Path, default=Path(__file__).parent / "pictures")
    arguments.add_argument("--small", action="store_true", help="100 posts, 4 topics")
    options = arguments.parse_args()

    blogs = cv.datasets.load_political_blogs()
    counts, words = blogs.counts[: 100 if options.small else 500], np.array(blogs.words)
    held_out = np.arange(counts.shape[0]) % 10 == 0
    train, test = counts[~held_out], counts[held_out]

    n_topics = 4 if options.small else 12
    lda = cv.LatentDirichletAllocation(
        n_topics,
        doc_topic_prior=0.3,
        topic_word_prior=0.1,
        max_iter=300,
        random_state=0,
    ).fit(train)
    topics = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
    half = test.copy()
    half.data = np.random.default_rng(0).binomial(test.data, 0.5)
    rest, frequency = test - half, np.asarray(train.sum(axis=0)).ravel() + 0.1
    predicted = lda.transform(half) @ topics
    print("perplexity of the other half of held-out posts")
    for name, probability in (
        ("frequencies of words", np.tile(frequency / frequency.sum(), (len(predicted), 1))),
        ("topics", predicted),
    ):
        print(f"{name:21} {np.exp(-np.sum(rest.toarray() * np.log(probability)) / rest.sum()):5.0f}")

    proportions = lda.transform(counts)
    share = proportions.mean(axis=0)
    lift = topics * np.log(topics / topics.mean(axis=0))  # words that are frequent here more than elsewhere
    order = np.argsort(-share)
    print("\nshare  words that tell a topic")
    for k in order:
        print(f"{share[k]:5.1%}  {' '.join(words[np.argsort(-lift[k])[:8]])}")

    plt.style.use("caviar.plot.caviar")
    figure, axes = (
        plt.subplots(2, 3, figsize=(7.2, 4.6)) if n_topics >= 6 else plt.subplots(2, 2, figsize=(7.2, 4.6))
    )
    for number, (axis, k) in enumerate(zip(axes.ravel(), order, strict=False)):
        top = np.argsort(-lift[k])[:8][::-1]
        axis.barh(words[top], topics[k, top] * 1000, color=f"C{number % 8}")
        axis.set_title(f"{share[k]:.0%} of the words")
        axis.tick_params(axis="y", length=0)
    figure.supxlabel("times in 1,000 words of the topic", fontsize=9)
    figure.savefig(options.pictures / "topics.png")


if __name__ == "__main__":
    main()

"""Examples of Infer.NET: figures that it publishes where these are exact, otherwise evidence by other means."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import digamma, expit, gammaln, log_ndtr, logsumexp, ndtr, softmax
from scipy.stats import multivariate_t, norm, truncnorm

import caviar as cv
from caviar.testing import elbo_estimate

from .exact import log_orthant, over_grid, path_evidence, sum_over_labels

OBS = cv.Plate("obs")


def test_two_coins():
    """Not both are heads: then each is heads with probability 1/3."""
    throw, sides = cv.Plate("throw"), [cv.Plate(f"side {i}", 2) for i in range(2)]
    coins = [cv.Categorical(f"coin {i}", [0.5, 0.5], plates=throw) for i in range(2)]
    both = cv.Constant("both", [[[1, 0], [1, 0]], [[1, 0], [0, 1]]], plates=sides)
    posterior = cv.Model(cv.Categorical("both heads", both[coins[0], coins[1]], plates=throw)).fit(
        {"both heads": [0]}
    )
    local = posterior.local({"both heads": [0]})
    assert local["coin 0"].probabilities[0, 1] == pytest.approx(1 / 3, abs=1e-12)
    assert posterior.elbo == pytest.approx(np.log(0.75), rel=1e-12)


def test_learning_a_gaussian():
    """Mean and precision in one factor: the data are one Student-t vector."""
    x = np.random.default_rng(0).normal(size=100)
    theta = cv.NormalGamma("theta", mean=0.0, mean_precision=0.01, shape=1.0, rate=1.0)
    posterior = cv.Model(cv.Normal("x", theta, plates=OBS)).fit({"x": x})
    exact = multivariate_t(np.zeros(100), np.eye(100) + 100.0, df=2.0).logpdf(x)
    assert posterior.elbo == pytest.approx(exact, rel=1e-10)


def test_a_biased_coin():
    posterior = cv.Model(cv.Bernoulli("x", cv.Beta("p", 1, 1), plates=OBS)).fit({"x": [1, 1, 0, 1]})
    assert posterior["p"].mean == pytest.approx(4 / 6)
    assert posterior.elbo == pytest.approx(np.log(1 / 20))


INCOME, AGE = [63.0, 16, 28, 55, 22, 20], [38.0, 23, 40, 27, 18, 40]
BOUGHT = np.array([1, 0, 1, 1, 0, 0])
NEW = np.array([[58.0, 36, 1], [18, 24, 1], [22, 37, 1]])


def test_bayes_point_machine():
    """Weighed draws; expectation propagation gives .955, .157 and .287 for the three new people."""
    design, noise = np.column_stack([INCOME, AGE, np.ones(6)]), 0.1
    w = cv.MultivariateNormal("w", np.zeros(3), np.eye(3))
    eta = cv.dot(cv.Data("X", plates=OBS), w)
    # a threshold of noise with variance .1
    model = cv.Model(cv.Bernoulli("buys", cv.probit(eta, method="expectation"), plates=OBS))
    scaled = {"buys": BOUGHT, "X": design / np.sqrt(noise)}
    posterior = model.fit(scaled, max_iter=20_000, tol=1e-9)
    # draws of a wide Normal, weighed by prior and answers
    rng, q = np.random.default_rng(0), posterior["w"]
    wide = multivariate_t(q.mean, 4 * q.covariance, df=4)
    draws = wide.rvs(40_000, random_state=rng)
    sign = np.where(BOUGHT, 1.0, -1.0) / np.sqrt(noise)
    log_weight = log_ndtr(draws @ (design * sign[:, None]).T).sum(axis=1)
    log_weight += norm.logpdf(draws).sum(axis=1) - wide.logpdf(draws)
    exact, weight = logsumexp(log_weight) - np.log(len(draws)), softmax(log_weight)
    assert exact - 3.0 < posterior.elbo < exact + 0.02
    told = weight @ ndtr(draws @ NEW.T / np.sqrt(noise))
    np.testing.assert_allclose(told, [0.955, 0.157, 0.287], atol=0.04)
    found = posterior.predict({"X": NEW / np.sqrt(noise)})["buys"].mean
    np.testing.assert_allclose(found, told, atol=0.15)
    assert ((found > 0.5) == (np.array(told) > 0.5)).all()


TREATED, CONTROL = [1, 0, 1, 1, 1], [0, 0, 1, 0, 0]


def trial(effective):
    """Return the log evidence of the trial, with an effect or without."""
    if effective:
        return sum(gammaln([own + 1, 6 - own]).sum() - gammaln(7) for own in (sum(TREATED), sum(CONTROL)))
    total = sum(TREATED) + sum(CONTROL)
    return gammaln([total + 1, 11 - total]).sum() - gammaln(12)


def test_a_clinical_trial_by_two_fits():
    rate = cv.Beta("rate", 1, 1, plates=cv.Plate("arm", 2))
    arm = np.repeat([0, 1], 5)
    two = cv.Model(cv.Bernoulli("cured", rate[cv.Data("arm of", plates=OBS)], plates=OBS))
    one = cv.Model(cv.Bernoulli("cured", cv.Beta("rate", 1, 1), plates=OBS))
    cured = CONTROL + TREATED
    with_effect, without = two.fit({"cured": cured, "arm of": arm}).elbo, one.fit({"cured": cured}).elbo
    assert with_effect == pytest.approx(trial(True))
    assert without == pytest.approx(trial(False))
    assert expit(with_effect - without) == pytest.approx(0.7549, abs=5e-5)


def test_a_clinical_trial_in_one_model():
    """The label and the rates that it chooses share a factor; Infer.NET publishes .7549."""
    trials, patient, effect = cv.Plate("trial"), cv.Plate("patient", 10), cv.Plate("effect", 2)
    cells = np.stack([np.zeros(10, dtype=int), 1 + np.repeat([0, 1], 5)], axis=1)
    effective = cv.Categorical("effective", [0.5, 0.5], plates=trials)
    rate = cv.Beta("rate", 1.0, 1.0, plates=(trials, cv.Plate("cell", 3)))
    cell = cv.Data("cell", plates=(patient, effect))
    data = {"cured": np.array([CONTROL + TREATED]), "cell": cells}
    posterior = cv.Model(cv.Bernoulli("cured", rate[cell[effective]], plates=(trials, patient))).fit(data)
    assert posterior.local(data)["effective"].probabilities[0, 1] == pytest.approx(0.7549, abs=5e-5)
    assert posterior.elbo == pytest.approx(np.logaddexp(trial(True), trial(False)) - np.log(2), rel=1e-10)


def test_mixture_of_gaussians():
    """Clear components: the factors are the exact posterior given the labels, and the bound its evidence."""
    rng = np.random.default_rng(0)
    truth = rng.random(150) < 0.6
    x = rng.multivariate_normal([0, 0], np.eye(2), 150) + np.where(truth[:, None], 20.0, -20.0)
    k, n = cv.Plate("k", 2), np.bincount(truth)
    theta = cv.NormalWishart("theta", np.zeros(2), 0.01, 3.0, np.eye(2), plates=k)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=OBS)
    posterior = cv.Model(cv.MultivariateNormal("x", theta[z], plates=OBS)).fit({"x": x})
    one = cv.Model(
        cv.MultivariateNormal("x", cv.NormalWishart("theta", np.zeros(2), 0.01, 3.0, np.eye(2)), plates=OBS)
    )
    exact = sum(one.fit({"x": x[truth == own]}).elbo for own in (True, False))
    exact += gammaln(n + 1).sum() - gammaln(152)
    assert posterior.elbo == pytest.approx(exact, abs=1e-6)


WINNER, LOSER = np.array([0, 0, 0, 1, 3, 4]), np.array([1, 3, 4, 2, 1, 2])
SKILL_MEAN, SKILL_VARIANCE = 6.0, 9.0
OF_PAIRS = np.eye(5)[WINNER] - np.eye(5)[LOSER]


@pytest.mark.slow
def test_static_trueskill():
    """Orthants of the differences; expectation propagation gives means 9.52, 4.96, 2.64, 6.83 and 6.05."""
    skill = cv.MultivariateNormal("skill", np.full(5, SKILL_MEAN), np.eye(5) / SKILL_VARIANCE)
    # two performances with variance 1: the difference has variance 2
    eta = cv.dot(cv.Data("pair", plates=OBS), skill)
    model = cv.Model(cv.Bernoulli("won", cv.probit(eta, method="expectation"), plates=OBS))
    posterior = model.fit({"won": np.ones(6), "pair": OF_PAIRS / np.sqrt(2)}, tol=1e-12, max_iter=2000)
    covariance = SKILL_VARIANCE * OF_PAIRS @ OF_PAIRS.T + 2.0 * np.eye(6)
    exact = log_orthant(np.zeros(6), covariance)
    assert exact - 1.5 < posterior.elbo < exact
    means = []
    for player in range(5):
        # Stein: the mean is moved by the slope of log Z in the prior mean
        up, down = (log_orthant(step * OF_PAIRS[:, player], covariance) for step in (0.5, -0.5))
        means.append(SKILL_MEAN + SKILL_VARIANCE * (up - down))
    np.testing.assert_allclose(means, [9.52, 4.96, 2.64, 6.83, 6.05], atol=0.15)
    np.testing.assert_allclose(posterior["skill"].mean, means, atol=0.6)
    assert (np.argsort(posterior["skill"].mean) == np.argsort(means)).all()


@pytest.mark.slow
def test_chess_over_time():
    """A chain of skills for each player, who drift from year to year: orthants of all games."""
    white, year = np.array([0, 1, 0, 0, 1, 0]), 6
    steps = cv.Plate("year")
    chains = [
        cv.LinearGaussianChain(f"player {i}", [0.0], [[1.0]], [[1.0]], [[4.0]], along=steps) for i in range(2)
    ]
    sign = np.where(white == 0, 1.0, -1.0)
    side = cv.Data("side", plates=steps)
    eta = cv.dot([1.0], chains[0]) * side + cv.dot([-1.0], chains[1]) * side
    model = cv.Model(cv.Bernoulli("white won", cv.probit(eta), plates=steps))
    won = np.array([1, 0, 1, 1, 0, 1])
    posterior = model.fit({"white won": won, "side": sign}, tol=1e-9, max_iter=3000)
    walk = 1.0 + 0.25 * np.minimum.outer(np.arange(year), np.arange(year))
    signs = sign * np.where(won == 1, 1.0, -1.0)
    exact = log_orthant(np.zeros(year), np.outer(signs, signs) * 2 * walk + np.eye(year))
    data = {"white won": won, "side": sign}
    estimate = elbo_estimate(posterior, data, n_draws=100)
    assert abs(posterior.elbo - estimate.value) < 4 * estimate.error
    assert exact - 3.0 < posterior.elbo < exact
    skills = posterior.local(data)
    assert (skills["player 0"].mean[:, 0] > skills["player 1"].mean[:, 0]).all()


def test_wet_grass():
    """The sprinkler: a table with two parents. Rain given wet grass has probability .3577."""
    day, yes_no = cv.Plate("day"), [cv.Plate("if rain", 2), cv.Plate("if sprinkler", 2)]
    rain = cv.Categorical("rain", [0.8, 0.2], plates=day)
    on = cv.Constant("on", [[0.6, 0.4], [0.99, 0.01]], plates=yes_no[0])
    sprinkler = cv.Categorical("sprinkler", on[rain], plates=day)
    table = [[[1.0, 0.0], [0.1, 0.9]], [[0.2, 0.8], [0.01, 0.99]]]
    wet = cv.Constant("wet", table, plates=yes_no)
    posterior = cv.Model(cv.Categorical("grass", wet[rain, sprinkler], plates=day)).fit({"grass": [1]})
    local = posterior.local({"grass": [1]})
    assert local["rain"].probabilities[0, 1] == pytest.approx(0.3577, abs=5e-5)
    given_rain, given_none = 0.99 * 0.8 + 0.01 * 0.99, 0.4 * 0.9
    assert posterior.elbo == pytest.approx(np.log(0.2 * given_rain + 0.8 * given_none), rel=1e-12)


def test_wet_grass_below_clouds():
    """Murphy's network, where clouds choose rain and sprinkler: .4298, .7079 and .6471, the sums over all labels."""
    day = cv.Plate("day")
    if_cloudy, if_rain, if_on = (cv.Plate(f"if {name}", 2) for name in ("cloudy", "rain", "on"))
    cloudy = cv.Categorical("cloudy", [0.5, 0.5], plates=day)
    of_rain = cv.Constant("of rain", [[0.8, 0.2], [0.2, 0.8]], plates=if_cloudy)
    of_on = cv.Constant("of on", [[0.5, 0.5], [0.9, 0.1]], plates=if_cloudy)
    rain = cv.Categorical("rain", of_rain[cloudy], plates=day)
    on = cv.Categorical("on", of_on[cloudy], plates=day)
    table = [[[1.0, 0.0], [0.1, 0.9]], [[0.1, 0.9], [0.01, 0.99]]]
    wet = cv.Constant("table", table, plates=(if_rain, if_on))[rain, on]
    posterior = cv.Model(cv.Categorical("wet", wet, plates=day)).fit({"wet": [1]})
    hidden = posterior.local({"wet": [1]})
    assert hidden["on"].probabilities[0, 1] == pytest.approx(0.4298, abs=5e-5)
    assert hidden["rain"].probabilities[0, 1] == pytest.approx(0.7079, abs=5e-5)
    assert posterior.elbo == pytest.approx(np.log(0.6471), rel=1e-12)


@pytest.mark.slow
def test_student_skills():
    """Noisy-and: an answer is right with .9 where all skills that it needs are there, else with .2."""
    skills, needs = 3, [[0], [1], [0, 1], [1, 2], [2]]
    right = np.array([[1, 1, 1, 0, 0], [1, 0, 0, 0, 1]])
    student = cv.Plate("student")
    has = [cv.Categorical(f"skill {i}", [0.5, 0.5], plates=student) for i in range(skills)]
    leaves = []
    for number, needed in enumerate(needs):
        plates = [cv.Plate(f"question {number} skill {i}", 2) for i in needed]
        p = np.full((2,) * len(needed), 0.2)
        p[(1,) * len(needed)] = 0.9
        table = cv.Constant(f"p {number}", p, plates=plates)
        chosen = table[tuple(has[i] for i in needed)] if len(needed) > 1 else table[has[needed[0]]]
        leaves.append(cv.Bernoulli(f"answer {number}", chosen, plates=student))
    data = {f"answer {number}": right[:, number] for number in range(5)}
    posterior = cv.Model(*leaves).fit(data)
    local, total = posterior.local(data), 0.0
    for row in range(2):

        def log_joint(own, row=row):
            p = np.array([0.9 if all(own[i] for i in needed) else 0.2 for needed in needs])
            return np.log(np.where(right[row], p, 1 - p)).sum() + skills * np.log(0.5)

        evidence, probability = sum_over_labels((2,) * skills, log_joint)
        total += evidence
        for i in range(skills):
            rest = tuple(j for j in range(skills) if j != i)
            found = local[f"skill {i}"].probabilities[row]
            np.testing.assert_allclose(found, probability.sum(axis=rest), atol=1e-10)
    assert posterior.elbo == pytest.approx(total, rel=1e-11)


def test_click_model():
    """A cascade: a user looks at the next result if the last one did not satisfy, and clicks if it is relevant."""
    look, attracts, satisfies = 0.9, np.array([0.6, 0.3, 0.5]), 0.7
    session, state = cv.Plate("session"), cv.Plate("looking", 2)
    clicks = np.array([[1, 0, 0], [0, 0, 1], [1, 1, 0]])
    data = {f"click {i}": clicks[:, i] for i in range(3)}
    leaves, looks = [], cv.Categorical("looks 0", [0.0, 1.0], plates=session)
    for i in range(3):
        given = cv.Constant(f"attraction {i}", [0.0, attracts[i]], plates=state)
        leaves.append(cv.Bernoulli(f"click {i}", given[looks], plates=session))
        if i < 2:
            # whoever clicks is satisfied with .7; without a click the next result is looked at with .9
            table = np.zeros((2, 2, 2))
            table[:, 0] = [1.0, 0.0]
            table[0, 1], table[1, 1] = [1 - look, look], [satisfies, 1 - satisfies]
            clicked = cv.Plate(f"clicked {i}", 2)
            choice = cv.Constant(f"next {i}", table, plates=(clicked, state))
            of_click = cv.Data(f"clicked at {i}", plates=session)
            data[f"clicked at {i}"] = clicks[:, i]
            looks = cv.Categorical(f"looks {i + 1}", choice[of_click][looks], plates=session)
    posterior = cv.Model(*leaves).fit(data)
    total = 0.0
    for row in clicks:

        def log_joint(own, row=row):
            p = 1.0
            for i, is_looking in enumerate((1, *own)):
                p *= (attracts[i] if row[i] else 1 - attracts[i]) if is_looking else float(row[i] == 0)
                if i < 2:
                    on = (1 - satisfies if row[i] else look) if is_looking else 0.0
                    p *= on if own[i] else 1 - on
            return np.log(p) if p > 0 else -np.inf

        total += sum_over_labels((2, 2), log_joint)[0]
    assert posterior.elbo == pytest.approx(total, rel=1e-11)


def test_truncated_gaussian():
    """A Normal that is known to be above a threshold, and values seen above it only."""
    data = {"x": [0.5], "is above": [1]}
    model = cv.Model(cv.CensoredNormal("x", 0.0, 1.0, censored=cv.Data("is above", plates=OBS), plates=OBS))
    posterior = model.fit(data)
    exact = truncnorm(0.5, np.inf)
    assert posterior.local(data)["x.value"].mean[0] == pytest.approx(exact.mean(), rel=1e-9)
    assert posterior.elbo == pytest.approx(norm.logsf(0.5), rel=1e-12)
    seen = np.array([0.6, 0.9, 2.0])
    posterior = cv.Model(cv.TruncatedNormal("x", 0.0, 1.0, lower=0.5, plates=OBS)).fit({"x": seen})
    assert posterior.elbo == pytest.approx(exact.logpdf(seen).sum(), rel=1e-12)


RIGHT = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1], [0, 0, 0]])


def test_difficulty_against_ability():
    """Answers by a probit of ability minus difficulty: orthants of all answers."""
    student, question = cv.Plate("student", 4), cv.Plate("question", 3)
    ability = cv.Normal("ability", 0.0, 1.0, plates=student)
    difficulty = cv.Normal("difficulty", 0.0, 1.0, plates=question)
    eta = ability + -1.0 * difficulty
    posterior = cv.Model(cv.Bernoulli("right", cv.probit(eta), plates=(student, question))).fit(
        {"right": RIGHT}, tol=1e-12, max_iter=2000
    )
    design = np.hstack([np.repeat(np.eye(4), 3, axis=0), -np.tile(np.eye(3), (4, 1))])
    signs = np.where(RIGHT.ravel(), 1.0, -1.0)
    exact = log_orthant(np.zeros(12), np.outer(signs, signs) * (design @ design.T) + np.eye(12))
    a, d = posterior.local({"right": RIGHT})["ability"], posterior["difficulty"]
    m = a.mean[:, None] - d.mean
    prior = sum(-0.5 * (own.variance + own.mean**2 - 1 - np.log(own.variance)).sum() for own in (a, d))
    bound = norm.logcdf(np.where(RIGHT, m, -m)) - 0.5 * (a.variance[:, None] + d.variance)
    assert posterior.elbo == pytest.approx(bound.sum() + prior, rel=1e-9)
    assert exact - 3.0 < posterior.elbo < exact
    assert a.mean.argsort().tolist() == [3, 1, 0, 2]
    assert posterior["difficulty"].mean.argsort().tolist() == [0, 1, 2]


def test_difficulty_against_ability_with_latent_answers():
    """Multiple choice without a key: the right answers are found; a student who cannot tell guesses."""
    rng, key = np.random.default_rng(1), np.array([2, 0, 1, 3, 1, 0])
    knows = rng.random((12, 6)) < np.repeat([0.9, 0.75, 0.3], 4)[:, None]
    given = np.where(knows, key, rng.integers(4, size=(12, 6)))
    student, question = np.indices(given.shape)
    chance, questions, people = cv.Plate("is right", 4), cv.Plate("question", 6), cv.Plate("student", 12)
    answer = cv.Categorical("answer", np.full(4, 0.25), plates=questions)
    prior = np.full((4, 12, 4), 0.5) + 2.5 * np.eye(4)[:, None, :]
    told = cv.Dirichlet("told", prior, plates=(chance, people))
    of = answer[cv.Data("question of", plates=OBS)], cv.Data("student of", plates=OBS)
    model = cv.Model(cv.Categorical("given", told[of[0]][of[1]], plates=OBS))
    data = {"given": given.ravel(), "question of": question.ravel(), "student of": student.ravel()}
    posterior = model.fit(data, seed=0)
    assert (posterior["answer"].probabilities.argmax(axis=1) == key).all()
    # the factor of an answer is its update from the factors of the students
    alpha = posterior["told"].concentration
    log_p = digamma(alpha) - digamma(alpha.sum(axis=-1, keepdims=True))
    logits = np.zeros((6, 4))
    np.add.at(logits, question.ravel(), log_p[:, student.ravel(), given.ravel()].T)
    expected = np.exp(logits - logits.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(posterior["answer"].probabilities, expected, atol=1e-6)


def test_multinomial_regression():
    """A bound that says so: below the evidence by quadrature, and near the mode of the posterior."""
    x, kind = np.array([-1.5, -1.0, -0.2, 0.1, 0.8, 1.4]), np.array([0, 0, 1, 0, 1, 1])
    category = cv.Plate("category", 2)
    w = cv.MultivariateNormal("w", np.zeros(1), np.eye(1), plates=category)
    eta = cv.dot(cv.Data("X", plates=OBS), w)
    model = cv.Model(cv.Categorical("kind", cv.softmax(eta), plates=OBS))
    posterior = model.fit({"X": x[:, None], "kind": kind}, tol=1e-12)
    grid = np.linspace(-6, 6, 401)
    first, second = np.meshgrid(grid, grid, indexing="ij")
    log_p = norm.logpdf(first) + norm.logpdf(second)
    for own, which in zip(x, kind, strict=True):
        log_p += own * (second if which else first) - np.logaddexp(own * first, own * second)
    evidence, _ = over_grid(log_p, grid, grid)
    assert evidence - 1.5 < posterior.elbo < evidence
    mode = np.unravel_index(log_p.argmax(), log_p.shape)
    np.testing.assert_allclose(posterior["w"].mean[:, 0], grid[list(mode)], atol=0.04)


def test_hidden_markov_model():
    x = np.array([0.2, -0.4, 2.2, 1.9, 0.1])
    time, state = cv.Plate("time"), cv.Plate("state", 2)
    initial, steps = np.array([0.6, 0.4]), np.array([[0.8, 0.2], [0.3, 0.7]])
    s = cv.MarkovChain("s", initial, steps, along=time)
    mean = cv.Constant("mean", [0.0, 2.0], plates=state)
    posterior = cv.Model(cv.Normal("x", mean[s], 4.0, plates=time)).fit({"x": x})
    exact = path_evidence(initial, steps, norm.logpdf(x[:, None], [0.0, 2.0], 0.5))
    assert posterior.elbo == pytest.approx(exact, rel=1e-12)

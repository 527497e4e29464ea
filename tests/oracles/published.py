"""Figures that others computed and published, to compare with to their printed digits.

Every bound holds every constant unless the comment says otherwise; logarithms are natural.
"""

import numpy as np

# --- BayesPy, doc/source/examples/regression.ipynb: y ~ N(design @ b, 1/tau)
REGRESSION_X = np.arange(10.0)
REGRESSION_Y = 2.0 * REGRESSION_X + 5.0 + 2.0 * np.random.RandomState(42).randn(10)
REGRESSION_DESIGN = np.column_stack([np.ones(10), REGRESSION_X])
# (b, tau) jointly: tau ~ Gamma(1e-3, 1e-3), b | tau ~ N(0, (1e-6 tau I)^-1). The bound is the evidence.
REGRESSION_JOINT_LOG_EVIDENCE = -41.30423
# Apart: b ~ N(0, (1e-6 I)^-1), tau ~ Gamma(1e-3, 1e-3), start <tau> = 1, b updated first;
# after iterations 1 to 4.
REGRESSION_MEAN_FIELD_BOUNDS = (-40.80970, -40.57132, -40.56572, -40.56551)

# --- BayesPy, doc/source/examples/multinomial.ipynb: one Dirichlet(1/2, ...) for each row of counts
DIRICHLET_MULTINOMIAL_CONCENTRATION = np.full(5, 0.5)
DIRICHLET_MULTINOMIAL_COUNTS = np.array([[0, 9, 2, 0, 9], [0, 18, 0, 0, 2], [5, 2, 1, 3, 9]])
# With the multinomial coefficient of each row.
DIRICHLET_MULTINOMIAL_LOG_EVIDENCE = -26.17894

# --- Infer.NET, test/Tests/VmpTests.cs: x ~ N(m, 1/tau), m ~ N(0, variance 0.1), tau ~ Gamma(1, 1)
# q(m) q(tau); the run behind these stopped within 3e-8 of the fixed point (its <tau> is 1.313655892).
NORMAL_TOLERANCE = 5e-8
NORMAL_X = np.array([0.5])
NORMAL_PRIOR_MEAN, NORMAL_PRIOR_VARIANCE = 0.0, 0.1
NORMAL_PRIOR_SHAPE, NORMAL_PRIOR_RATE = 1.0, 1.0
NORMAL_BOUND = -1.2592065
NORMAL_EXPECTED_PRECISION = 1.31365592
NORMAL_EXPECTED_LOG_PRECISION = -0.09616110
NORMAL_EXPECTED_MEAN = 0.05805621
NORMAL_EXPECTED_SQUARED_MEAN = 0.09175928

# --- Infer.NET, test/Tests/VmpTests.cs: one draw from Categorical(p), p ~ Dirichlet(1, 1, 1, 1)
DIRICHLET_CATEGORICAL_CONCENTRATION = np.ones(4)
DIRICHLET_CATEGORICAL_DRAW = 2
DIRICHLET_CATEGORICAL_BOUND = -1.3862944

# --- Infer.NET, VmpGateTests.cs, Mixture1InferMeans: one row, two components of known precision
TWO_MEANS_X = np.array([7.0])
TWO_MEANS_PRIOR_MEANS, TWO_MEANS_PRIOR_VARIANCES = (6.85, 7.5), (0.1, 0.1)
TWO_MEANS_PRECISION = 10.0
TWO_MEANS_CONCENTRATION = np.ones(2)
# The run behind these stopped within 5e-6 of the fixed point (there r = 0.8548298). Its bound, in single
# precision, counts log N(m; 3, variance 1/2) of both prior means as data.
TWO_MEANS_TOLERANCE = 5e-6
TWO_MEANS_BOUND_WITH_PRIOR_MEANS = -36.972706
TWO_MEANS_BOUND = -0.75547734
TWO_MEANS_RESPONSIBILITIES = (0.854827, 0.145173)
TWO_MEANS_EXPECTED_MEANS = (6.919130, 7.436615)
TWO_MEANS_EXPECTED_LOG_WEIGHTS = (-0.598155, -1.283625)

# --- mclust vignette: Old Faithful, maximum likelihood, K = 3, one full covariance for all
# mclust 6.1.3 prints -1126.326, for it stops early.
OLD_FAITHFUL_TIED_3_LOG_LIKELIHOOD = -1126.31593

# --- hmmlearn, test_categorical_hmm.py: all parameters known
HMM_INITIAL = np.array([0.6, 0.4])
HMM_TRANSITION = np.array([[0.7, 0.3], [0.4, 0.6]])
HMM_EMISSION = np.array([[0.1, 0.4, 0.5], [0.6, 0.3, 0.1]])
HMM_OBSERVED = np.array([0, 1, 2])
HMM_LOG_EVIDENCE = -3.3928721
HMM_POSTERIORS = np.array([[0.23170, 0.76830], [0.62406, 0.37594], [0.86398, 0.13602]])

"""Each row of the page of galleries has tests, and these assert the figures that it gives."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).parent.parent
PAGE = TESTS.parent / "docs" / "galleries" / "index.md"
EXACT = 1e-5
"""The largest tolerance, relative or in nats, of what is called exact."""

FIGURE = r"(?<![\w.])-?(?:\d*\.)?\d+(?:e-\d+)?(?!\w)"

# file::test, without "test_"; files are in this folder, or in another one of tests/
ROWS = {
    "BayesPy": {
        "linear regression": "bayespy::linear_regression",
        "multi-output regression": "bayespy::multi_output_regression",
        "Gaussian mixture": "bayespy::gaussian_mixture",
        "Bernoulli and categorical mixtures": "bayespy::mixtures",
        "hidden Markov model": "rxinfer::hidden_markov_model",
        "Kalman filter, linear state space": "rxinfer::kalman_filter_with_known_noise",
        "Gaussian process with a fixed kernel": "bayespy::gaussian_process_with_a_fixed_kernel "
        "rxinfer::gaussian_process_by_a_state_space",
        "principal components": "bayespy::principal_components_of_known_loadings "
        "oracles/models_factors::elbo_agrees_with_bayespy",
        "topics": "bnpy::latent_dirichlet_allocation",
        "stochastic inference": "bayespy::stochastic_inference",
        "multinomial with a Dirichlet": "bayespy::multinomial",
        "GammaShape": "bayespy::gamma_shape",
        "Concentration": "bayespy::concentration "
        "oracles/hierarchical_dirichlet::hidden_sticks_alone_have_their_exact_posterior "
        "oracles/unknown_concentrations::the_elbo_is_a_bound_and_moments_are_near_the_exact_ones "
        "oracles/unknown_concentrations::point_masses_are_where_bayespy_has_them",
        "Markov chain of mixtures": "oracles/labels_beside_chains::states_and_labels_are_exact",
        "switching state space": "oracles/switching_dynamics::bound_and_both_factors_are_those_of_mean_field_by_hand "
        "bayespy::switching_state_space",
        "drifting state space": "oracles/drifting_dynamics::bound_and_both_chains_are_those_of_mean_field_by_hand "
        "bayespy::drifting_state_space",
    },
    "Infer.NET": {
        "two coins": "infer_net::two_coins",
        "learning a Gaussian": "infer_net::learning_a_gaussian",
        "biased coin": "infer_net::a_biased_coin",
        "Bayes point machine": "infer_net::bayes_point_machine",
        "clinical trial, two fits": "infer_net::a_clinical_trial_by_two_fits",
        "clinical trial, one model": "infer_net::a_clinical_trial_in_one_model",
        "mixture of Gaussians": "infer_net::mixture_of_gaussians",
        "factor analysis, principal components": "bayespy::principal_components_of_known_loadings",
        "topics": "bnpy::latent_dirichlet_allocation",
        "hidden Markov model": "infer_net::hidden_markov_model",
        "rats, one or two effects": "further_examples::rats further_examples::rats_with_a_factor_for_each_variable",
        "TrueSkill": "infer_net::static_trueskill",
        "chess over time": "infer_net::chess_over_time",
        "difficulty against ability": "infer_net::difficulty_against_ability",
        "the same with latent answers": "infer_net::difficulty_against_ability_with_latent_answers",
        "Matchbox": "further_examples::matchbox literature::matrix_factorisation",
        "Dawid and Skene": "further_examples::dawid_and_skene "
        "oracles/labels_of_groups::votes_on_items_weigh_annotators_by_how_often_they_are_right",
        "sprinkler": "infer_net::wet_grass infer_net::wet_grass_below_clouds",
        "student skills (noisy-and)": "infer_net::student_skills",
        "click model": "infer_net::click_model",
        "multinomial regression": "infer_net::multinomial_regression",
        "stochastic block model": "literature::stochastic_block_model",
        "truncated Gaussian": "infer_net::truncated_gaussian oracles/partly_seen_normals::"
        "truncated_values_of_an_unknown_normal_lie_below_the_evidence",
    },
    "RxInfer": {
        "coin, linear regression": "rxinfer::coin_toss rxinfer::linear_regression",
        "binomial regression": "rxinfer::binomial_regression",
        "probit regression": "rxinfer::probit_regression",
        "hidden Markov model": "rxinfer::hidden_markov_model",
        "hidden Markov model with control": "rxinfer::hidden_markov_model_with_control",
        "Kalman filter, known noise": "rxinfer::kalman_filter_with_known_noise",
        "Kalman filter, unknown noise": "rxinfer::kalman_filter_with_unknown_noise",
        "Kalman filter with inputs": "rxinfer::kalman_filter_with_inputs",
        "Gaussian process by a state space": "rxinfer::gaussian_process_by_a_state_space",
        "autoregression": "rxinfer::autoregression",
        "latent autoregression": "rxinfer::latent_autoregression",
        "univariate and multivariate mixtures": "rxinfer::univariate_mixture bayespy::mixtures",
        "gamma mixture, one shape or several": "rxinfer::gamma_mixture_with_known_shapes",
        "skills of a student": "rxinfer::skills_of_a_student",
        "probit random walk": "rxinfer::probit_random_walk",
        "multinomial regression": "rxinfer::multinomial_regression_by_stick_breaking",
        "Bayesian network": "rxinfer::bayesian_network",
        "counts with known windows": "rxinfer::poisson_and_exponential_counts",
        "switching linear dynamics": "rxinfer::dynamics_that_switch",
        "hierarchical Gaussian filter": "rxinfer::dynamics_that_switch",
    },
    "bnpy": {
        "Gauss, ZeroMeanGauss, DiagGauss, Bernoulli, Mult": "bnpy::gauss bnpy::zero_mean_gauss bnpy::diag_gauss "
        "bnpy::bernoulli bnpy::mult",
        "AutoRegGauss, diagonal noise": "bnpy::auto_reg_gauss_with_diagonal_noise",
        "AutoRegGauss, full noise": "bnpy::auto_reg_gauss_with_full_noise",
        "Dirichlet process mixture": "bnpy::dirichlet_process_mixture",
        "topics": "bnpy::latent_dirichlet_allocation",
        "hidden Markov model, sticky by a fixed prior": "bnpy::hidden_markov_models",
        "HDP topics": "oracles/hierarchical_topics::bound_and_updates_are_those_that_the_compiler_derives",
        "HDP-HMM, sticky HDP-HMM": "bnpy::states_around_common_weights "
        "oracles/hierarchical_dirichlet::the_factors_of_a_chain_are_optimal_and_bound_the_evidence",
    },
    "The literature": {
        "crossed, nested and multilevel effects, random slopes": "literature::linear_models_of_groups",
        "vector hierarchies with an unknown mean": "literature::vector_hierarchy_with_an_unknown_mean",
        "predictors of groups for vectors": "literature::predictors_of_groups_for_vectors",
        "hierarchical logistic regression": "literature::hierarchical_logistic_regression",
        "relevance determination": "literature::relevance_determination_of_one_weight",
        "local and global horseshoe": "literature::horseshoes",
        "Student-t noise": "literature::student_t_by_a_gamma_of_each_row",
        "mixtures of regressions": "literature::mixture_of_regressions",
        "factor analysers, canonical correlation": "literature::gaussian_factors_seen_from_two_sides",
        "matrix factorisation": "literature::matrix_factorisation",
        "CP factorisation": "further_examples::cp_factorisation",
        "Dirichlet-multinomial, beta-binomial": "literature::dirichlet_multinomial literature::beta_binomial",
        "pump failures": "literature::pump_failures",
        "zero-inflated Poisson": "literature::zero_inflated_poisson",
        "mixtures of experts; occupancy": "oracles/hidden_broken_sticks::"
        "the_bound_is_that_by_hand_and_below_quadrature "
        "oracles/hidden_broken_sticks::use_of_sites_has_the_moments_of_the_exact_posterior",
        "frailty, Weibull of known shape": "literature::frailty literature::weibull_lifetimes_of_known_shape",
        "two-parameter item response": "literature::two_parameter_item_response",
        "Bradley and Terry": "literature::bradley_terry",
        "stick-breaking logit": "rxinfer::multinomial_regression_by_stick_breaking",
        "spike and slab: `SpikeSlab`, `Bernoulli` times `Normal`, gated widths": "literature::spike_and_slab",
        "single effects": "literature::single_effects "
        "oracles/sparse_effects::single_effects_end_where_the_published_updates_do",
        "binary factors": "literature::binary_factors",
        "`a[z] + b[v]`, `B[z][v]`, `mu[z][Data]`, `z[Data]`": "literature::a_label_and_another_one_in_a_sum "
        "literature::tables_with_two_indices literature::labels_of_ragged_groups",
        "biclustering, clustering of columns": "literature::biclustering literature::clustering_of_columns",
        "mixtures and chains with unequal priors": "further_examples::unequal_priors",
        "Poisson rates: exposure, rank one, factorisation": "literature::products_of_rates "
        "literature::gamma_poisson_factorisation",
        "negative binomial": "literature::negative_binomial_of_an_unknown_mean",
        "block models, mixed membership": "literature::stochastic_block_model "
        "literature::mixed_membership_block_model",
        "flexmix with groups, latent-class growth": "literature::labels_of_ragged_groups",
        "nonnegative factorisation with Gaussian noise": "further_examples::nonnegative_factorisation",
        "stochastic frontier": "oracles/half_normals::a_hidden_number_of_each_row_is_a_skew_normal",
        "coefficients of a known sign": "oracles/half_normals::one_coefficient_has_its_exact_posterior_far_from_"
        "zero_too oracles/half_normals::two_coefficients_and_their_width_are_below_the_evidence",
        "ordinal probit": "literature::ordinal_probit",
        "supervised topics": "oracles/label_frequencies::the_bound_is_that_of_the_formula_and_never_falls "
        "oracles/label_frequencies::labels_of_a_document_are_near_the_sum_over_all_of_them "
        "further_examples::supervised_topics",
        "correlated topics": "oracles/logistic_normal::the_bound_of_known_topics_is_that_by_hand_and_below_quadrature",
        "Dirichlet-multinomial regression": "oracles/logistic_normal::counts_of_units_with_columns_are_below_"
        "importance_sampling oracles/logistic_normal::a_dirichlet_of_units_without_columns_is_the_limit_that_it_"
        "replaces",
        "mixture of hidden Markov models": "literature::mixture_of_hidden_markov_models",
        "factorial hidden Markov model": "literature::factorial_hidden_markov_model",
        "two Gaussian chains": "literature::two_gaussian_chains",
        "robust Kalman filter": "literature::robust_kalman_filter",
        "chains with Student-t, mixture, autoregressive, probit and logit emissions": "literature::hidden_markov_"
        "models_with_other_emissions",
        "several outputs, VAR with known or Wishart noise": "literature::several_outputs_with_common_noise "
        "bnpy::auto_reg_gauss_with_full_noise",
        "chains whose steps depend on columns": "oracles/steps_behind_links::"
        "known_slopes_leave_the_evidence_of_a_chain oracles/steps_behind_links::"
        "the_bound_is_below_quadrature_and_slopes_are_near",
        "change point with one label": "literature::a_change_point",
        "censoring with an unknown variance": "literature::censoring_with_an_unknown_variance",
        "a table of log densities (PyClone-VI)": "literature::a_potential_of_known_densities",
        "an unknown total of a Beta": "literature::an_unknown_total_of_a_beta",
    },
    "Papers since 2021": {
        "effects from summary statistics": "recent_papers::effects_from_summary_statistics",
        "coefficients with a mixture of widths": "recent_papers::mixture_of_widths_of_coefficients",
        "spike and slab, here with a Normal slab": "recent_papers::spike_and_slab_in_high_dimensions",
        "coefficients of two values": "recent_papers::coefficients_of_two_values",
        "probit regression, many columns": "recent_papers::probit_regression_with_more_columns_than_rows",
        "tobit regression": "recent_papers::tobit_regression",
        "categories as independent answers": "recent_papers::categories_as_independent_answers",
        "crossed random slopes": "recent_papers::crossed_random_slopes",
        "structural equations": "recent_papers::structural_equations",
        "autoregression of vectors, horseshoe": "recent_papers::vector_autoregression_with_shrinkage",
        "matrix factorisation, unknown widths": "recent_papers::empirical_bayes_matrix_factorisation",
        "components under noise that differs": "recent_papers::components_under_noise_that_differs",
        "factors that are smooth in time": "recent_papers::factors_that_are_smooth_in_time",
        "deep mixture of factor analysers": "recent_papers::deep_mixture_of_factor_analysers",
        "mixtures of finite mixtures": "recent_papers::dynamic_mixtures_of_finite_mixtures",
        "mixture of latent class models": "recent_papers::mixture_of_latent_class_models",
        "block model with attributes": "recent_papers::block_model_with_attributes",
        "measurement and expression": "recent_papers::measurement_and_expression",
        "cell types in spots, Poisson counts": "recent_papers::cell_types_in_spots",
        "normal means": "recent_papers::normal_means_with_known_errors",
        "tensors of spikes": "recent_papers::tensors_of_spikes",
        "sequences by contexts": "recent_papers::sequences_by_their_contexts",
        "which records are the same": "further_papers::links_between_records",
        "skills that change": "further_papers::skills_that_change",
        "columns that tell clusters apart": "further_papers::columns_that_tell_clusters_apart",
        "counterfactuals by factors in time": "further_papers::a_counterfactual",
        "neighbours on a map": "further_papers::neighbours_on_a_map",
        "groups of coefficients": "further_papers::groups_of_coefficients_that_may_be_absent",
        "mixture of linear dynamics": "further_papers::mixture_of_linear_dynamics",
        "topics with keywords": "further_papers::topics_with_keywords",
        "how long states last": "further_papers::how_long_states_last",
        "coefficients that drift": "further_papers::coefficients_that_drift",
        "counts that excite themselves": "further_papers::counts_that_excite_themselves",
        "instruments of which some are invalid": "further_papers::instruments_of_which_some_are_invalid",
        "communities over several networks": "further_papers::communities_over_several_networks",
        "effects in several conditions": "further_papers::effects_in_several_conditions",
        "factors of all studies and of each": "further_papers::factors_of_all_studies_and_of_each",
    },
}


class Row(NamedTuple):
    """A row of the page."""

    section: str
    model: str
    says: str


class Source(NamedTuple):
    """The code of a test with all that it names in its own file, and its decorators."""

    nodes: tuple[ast.AST, ...]
    decorators: str

    def numbers(self) -> set[float]:
        """Return the numbers in it, without signs."""
        return {
            float(own.value)
            for node in self.nodes
            for own in ast.walk(node)
            if isinstance(own, ast.Constant)
            and isinstance(own.value, int | float)
            and not isinstance(own.value, bool)
        }

    def tolerances(self) -> list[float]:
        """Return the largest tolerance of each comparison; without one it is that of the function."""
        found = []
        for node in self.nodes:
            for call in ast.walk(node):
                name = getattr(
                    getattr(call, "func", None), "attr", getattr(getattr(call, "func", None), "id", "")
                )
                if isinstance(call, ast.Call) and name in ("approx", "assert_allclose"):
                    given = [
                        own.value.value
                        for own in call.keywords
                        if own.arg in ("rel", "abs", "rtol", "atol") and isinstance(own.value, ast.Constant)
                    ]
                    found.append(max(map(float, given), default=1e-6))
        return found


def rows() -> list[Row]:
    """Return the rows of the tables of models."""
    found, section = [], ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            section = line[3:]
        cells = [own.strip() for own in line.strip("|").split(" | ")]
        if section and len(cells) > 2 and not cells[0].startswith(("model", "---", "|---")):
            found.append(Row(section, cells[0].strip("| "), cells[-1]))
    return found


@cache
def module(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def asserted_by(row: Row) -> list[tuple[Path, str]]:
    found = []
    for own in ROWS[row.section][row.model].split():
        file, name = own.split("::")
        folder, _, stem = file.rpartition("/")
        found.append((TESTS / (folder or "galleries") / f"test_{stem}.py", f"test_{name}"))
    return found


def source_of(path: Path, name: str) -> Source:
    """Return the code of a test."""
    defined = {}
    for node in module(path).body:
        for own in getattr(node, "targets", [node]):
            for part in getattr(own, "elts", [own]):
                defined[getattr(part, "id", getattr(part, "name", None))] = node
    tests, nodes, todo = {name}, [], [name]
    while todo:
        node = defined[todo.pop()]
        nodes.append(node)
        for own in ast.walk(node):
            if isinstance(own, ast.Name) and own.id in defined and own.id not in tests:
                tests.add(own.id)
                todo.append(own.id)
    named = {own.attr for node in nodes for own in ast.walk(node) if isinstance(own, ast.Attribute)}
    nodes += [
        node
        for node in module(TESTS / "oracles" / "published.py").body
        if isinstance(node, ast.Assign) and any(getattr(own, "id", None) in named for own in node.targets)
    ]
    return Source(tuple(nodes), " ".join(map(ast.unparse, getattr(defined[name], "decorator_list", []))))


def test_rows_and_tests_are_those_of_the_page():
    """No row without a test, and no test of a row that is gone."""
    stated = [own[:2] for own in rows()]
    assert len(set(stated)) == len(stated)
    assert set(stated) == {(section, model) for section, own in ROWS.items() for model in own}


def test_tests_of_the_galleries_are_rows():
    used = {own for row in rows() for own in asserted_by(row)}
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        if path != Path(__file__):
            names = {
                own.name
                for own in module(path).body
                if isinstance(own, ast.FunctionDef) and own.name.startswith("test_")
            }
            assert {name for name in names if (path, name) not in used} == set()


@pytest.mark.parametrize("row", rows(), ids=lambda own: f"{own.section}, {own.model}")
def test_a_row_claims_what_its_tests_assert(row):
    """Tests are run, figures of the row are numbers in them, and an exact one has a small tolerance."""
    sources = [source_of(*own) for own in asserted_by(row)]
    for own in sources:
        assert not re.search(r"skip|xfail", own.decorators)
    says = re.sub(r"`[^`]*`|\]\([^)]*\)", " ", row.says).replace("−", "-").replace(",", " ")
    figures = [abs(float(own)) for own in re.findall(FIGURE, says)]
    numbers = set().union(*(own.numbers() for own in sources))
    assert [own for own in figures if own not in numbers] == []
    if "exact" in says and "exact ones" not in says:
        assert min(min(own.tolerances(), default=1.0) for own in sources) <= EXACT

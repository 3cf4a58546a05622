"""Losses that a statement may name, with their parameters."""

from __future__ import annotations

from edl.errors import Advice
from sqlflow_edl.analysis.entries import NETWORKS, Catalog, Entry
from sqlflow_edl.analysis.settings import trees
from sqlflow_edl.analysis.settings.attribute_dictionary import AttributeRow


def _loss_parameter(
    name: str,
    default: float | None,
    doc: str,
    low: float,
    high: float | None = None,
    also: tuple[str, ...] = (),
) -> AttributeRow:
    aliases = (f"model.loss.{name}", *also)
    return AttributeRow(f"loss.{name}", "number", doc, default, low=low, high=high, aliases=aliases)


_ALL = (*NETWORKS, *trees.LIBRARIES)
_TREES = tuple(trees.LIBRARIES)


_TIMES = Advice(
    "write gamma to predict the times of rows that have ended, or predict in two classes whether a row ends within "
    "some time",
    "gamma",
)
_ABSENT = {
    "survival:aft": ("it takes two bounds of a time, and a label here is one number", _TIMES),
    "survival:cox": ("it orders all rows by their times, and a loss here is a mean over single rows", _TIMES),
}


LOSSES = Catalog(
    "loss",
    (
        Entry(
            "mean_squared_error",
            "Squared error.",
            aliases=("mse", "squared_error", "l2", "reg:squarederror", "reg:linear", "regression"),
            task="regression",
            frameworks=_ALL,
        ),
        Entry(
            "mean_absolute_error",
            "Absolute error.",
            aliases=("mae", "l1", "reg:absoluteerror", "regression_l1"),
            task="regression",
            frameworks=_ALL,
        ),
        Entry(
            "huber",
            "Squared near zero, absolute beyond delta deviations.",
            (
                _loss_parameter(
                    "delta",
                    1.0,
                    "Error at which the loss becomes linear, in standard deviations of the label.",
                    1e-9,
                ),
            ),
            aliases=("reg:pseudohubererror",),
            task="regression",
            frameworks=_ALL,
        ),
        Entry("log_cosh", "Logarithm of the hyperbolic cosine of the error.", task="regression"),
        Entry(
            "quantile",
            "Pinball loss: the model predicts a quantile of the label, not its mean.",
            (
                _loss_parameter(
                    "quantile",
                    0.5,
                    "Share of the labels below the prediction.",
                    1e-6,
                    0.999999,
                    ("loss.alpha", "quantile_alpha", "quantile"),
                ),
            ),
            aliases=("reg:quantileerror", "pinball"),
            task="regression",
            frameworks=_TREES,
        ),
        Entry(
            "poisson",
            "Negative log-likelihood of a Poisson distribution, for counts; labels from 0.",
            aliases=("count:poisson",),
            task="regression",
            frameworks=_TREES,
        ),
        Entry(
            "gamma",
            "Negative log-likelihood of a gamma distribution, for amounts; labels above 0.",
            aliases=("reg:gamma",),
            task="regression",
            frameworks=_TREES,
        ),
        Entry(
            "tweedie",
            "Negative log-likelihood of a Tweedie distribution, for amounts that are often 0; labels from 0.",
            (
                _loss_parameter(
                    "power",
                    1.5,
                    "Exponent of the variance: near 1 like Poisson, near 2 like gamma.",
                    1.000001,
                    1.999999,
                    ("tweedie_variance_power", "model.tweedie_variance_power"),
                ),
            ),
            aliases=("reg:tweedie",),
            task="regression",
            frameworks=_TREES,
        ),
        Entry(
            "squared_log_error",
            "Half of the squared difference of the logarithms of the number and 1; labels from 0.",
            aliases=("reg:squaredlogerror", "msle", "mean_squared_log_error"),
            task="regression",
            frameworks=("xgboost",),
        ),
        Entry(
            "cross_entropy",
            "Negative log-likelihood of the class.",
            (
                _loss_parameter(
                    "label_smoothing",
                    None,
                    "Share of each label spread over all classes, in networks (Szegedy et al., 2016).",
                    0,
                    0.9,
                    ("label_smoothing",),
                ),
            ),
            aliases=(
                "binary_crossentropy",
                "categorical_crossentropy",
                "sparse_categorical_crossentropy",
                "sigmoid_cross_entropy",
                "softmax_cross_entropy",
                "log_loss",
                "binary:logistic",
                "binary:logitraw",
                "reg:logistic",
                "multi:softprob",
                "multi:softmax",
                "binary",
                "multiclass",
            ),
            task="classification",
            frameworks=_ALL,
        ),
        Entry(
            "focal",
            "Cross-entropy with lower weight for easy rows (Lin et al., 2017).",
            (_loss_parameter("gamma", 2.0, "Exponent that reduces the weight of easy rows.", 0, 20),),
            aliases=("binary_focal_crossentropy", "categorical_focal_crossentropy", "focal_loss"),
            task="classification",
        ),
        Entry(
            "hinge",
            "Hinge loss of the margin between the classes.",
            aliases=("categorical_hinge", "binary:hinge"),
            task="classification",
            frameworks=(*NETWORKS, "xgboost"),
        ),
        Entry(
            "squared_distance",
            "Squared distance to the nearest centre, in the units of the features.",
            aliases=("inertia", "kmeans"),
            task="clustering",
            frameworks=("torch",),
        ),
        Entry(
            "cluster_divergence",
            "Kullback-Leibler divergence of soft assignments to clusters from sharper ones (Xie et al., 2016).",
            aliases=("kld", "kl_divergence"),
            task="clustering",
            frameworks=("torch",),
        ),
        Entry(
            "reconstruction_error",
            "Mean squared error of the features that a few numbers restore.",
            task="dimensionality reduction",
            frameworks=("torch",),
        ),
        Entry(
            "threshold_quantile",
            "Quantile loss of the threshold of anomalies, at the share of the other rows.",
            task="anomaly detection",
            frameworks=("torch",),
        ),
        Entry(
            "lambdarank",
            "NDCG by pairs of rows, weighted by what their exchange changes (LambdaMART; Burges, 2010).",
            aliases=("rank:ndcg", "lambdamart", "ndcg"),
            task="ranking",
            frameworks=_TREES,
        ),
        Entry(
            "pairwise",
            "Logistic loss of the pairs of rows of a group (RankNet; Burges et al., 2005).",
            aliases=("rank:pairwise", "ranknet"),
            task="ranking",
            frameworks=("xgboost",),
        ),
        Entry(
            "mean_average_precision",
            "Mean average precision by pairs of rows; relevance is 0 or 1.",
            aliases=("rank:map",),
            task="ranking",
            frameworks=("xgboost",),
        ),
        Entry(
            "xendcg",
            "Cross-entropy of random relevances that approximates NDCG (Bruch, 2021).",
            aliases=("rank_xendcg", "xe_ndcg", "xe_ndcg_mart", "xendcg_mart"),
            task="ranking",
            frameworks=("lightgbm",),
        ),
    ),
    absent=_ABSENT,
)

"""BoostedTreesRanker, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

from edl import features as fc
from edl import metrics
from edl.trees import XGBoost

FEATURES = fc.Features(
    fc.raw("age"),
    fc.codes(fc.vocabulary("department", ["engineering", "finance", "sales"])),
    fc.raw("hired", part="month"),
    fc.codes(fc.bucket("height", [1.5, 1.8])),
)
LABEL = fc.ranking("relevance", group="query")


def custom_model():
    return XGBoost(
        FEATURES,
        objective="rank:ndcg",
        learning_rate=0.1,
        lambdarank_num_pair_per_sample=20,
        seed=0,
    )


def feed(batch, mode):
    return FEATURES.transform(batch), LABEL.transform(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)  # higher is better, within a group


def eval_metrics_fn():
    return {"ndcg@10": metrics.NDCG(10), "map": metrics.MAP()}


if __name__ == "__main__":
    from edl.cli.main import run_program

    run_program(__file__)

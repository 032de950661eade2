"""The learners that a user would pick instead, behind one list: `learners`.

What scikit-learn has is taken from there. The modules of this folder have the others, all for two classes: linear
models by mini-batches, resampling, and three ways to mind that one mistake costs more than the other. A new learner to
compare with is one more line in the list.
"""

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from tenfold.baselines.adacost import AdaCost
from tenfold.baselines.expected_cost import ExpectedCostLogistic
from tenfold.baselines.mini_batches import MiniBatchLinear
from tenfold.baselines.resampling import RejectionSampled, Resampled


def learners(cost, seed):
    """The learners by name, unfitted and seeded, for rows within [0, 1] whose labels are +1 and -1.

    ``cost`` is what missing a positive and what missing a negative costs, or None: then all positives together cost
    as much as all negatives. It is for the cost-sensitive learners, the last five; the others do not know of it.
    """
    class_weight = "balanced" if cost is None else {1: cost[0], -1: cost[1]}
    seeded = {"random_state": seed}
    weighted = {"class_weight": class_weight}
    return {
        "logistic regression, mini-batches": MiniBatchLinear("logistic", **seeded),
        "linear SVM, mini-batches": MiniBatchLinear("hinge", **seeded),
        "logistic regression": LogisticRegression(max_iter=1000),
        "linear SVM": LinearSVC(**seeded),
        "SVM with Gaussian kernel": SVC(),
        "Gaussians with shared covariance": LinearDiscriminantAnalysis(),
        "bagging": BaggingClassifier(n_estimators=100, **seeded),
        "AdaBoost": AdaBoostClassifier(n_estimators=100, **seeded),
        "random forest": RandomForestClassifier(n_estimators=300, **seeded),
        "gradient boosting": HistGradientBoostingClassifier(**seeded),
        "logistic regression, under-sampled": Resampled(how="under", **seeded),
        "logistic regression, over-sampled": Resampled(how="over", **seeded),
        "logistic regression, in between": Resampled(how="between", **seeded),
        "logistic regression, expected cost": ExpectedCostLogistic(**weighted),
        "cost-sensitive tree": DecisionTreeClassifier(min_samples_leaf=20, **weighted, **seeded),
        "cost-sensitive forest": RandomForestClassifier(n_estimators=300, **weighted, **seeded),
        "AdaCost": AdaCost(**weighted, **seeded),
        "costing by rejection sampling": RejectionSampled(**weighted, **seeded),
    }

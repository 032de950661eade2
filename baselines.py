"""The learners that a user would pick instead, behind one list: `learners`.

What scikit-learn has is taken from there. Here are the others, all for two classes: linear models by mini-batches,
resampling, and three ways to mind that one mistake costs more than the other. They all have ``classes_``, of which the
second is the positive one, and ``n_features_in_``.

Costs go by scikit-learn's ``class_weight``. Throughout, ``y`` is +1 or -1, and ``cost`` what missing each row costs.
"""

import time
import warnings
from dataclasses import dataclass, field
from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq, minimize
from scipy.special import expit
from scipy.stats import t
from sklearn.base import BaseEstimator, clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import check_is_fitted, validate_data

from oam import TwoClassMixin, two_classes
from preprocess import Preprocessor

COUNTS = ("batch", "epochs", "max_iter", "n_draws", "n_estimators")  # parameters that are whole numbers
CHOICES = {"how": ("under", "over", "between"), "loss": ("logistic", "hinge")}

# In units of 1 / spread. The mean logistic loss has a curvature of at most spread / 4: longer steps could diverge.
FIRST_STEP = 8.0

MOST_DENSE = 2e9  # bytes that sparse rows may take when made dense for those who need it

# An estimator that is right more often than wrong by less than this may owe it to rounding.
NO_EDGE = 1e-12


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


def takes_sparse(estimator):
    """Whether the estimator learns from sparse rows."""
    return get_tags(estimator).input_tags.sparse


def scores(model, X):
    """What a fitted model ranks the rows of X by: its decision function or else its chance of the second class."""
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict_proba(X)[:, 1]


class _TwoClass(TwoClassMixin, BaseEstimator):
    """What the learners here share: checks, and labels as signs."""

    def _check(self, X, y):
        """Rows and signs, once the parameters have been checked."""
        for name, value in self.get_params(deep=False).items():
            if name in COUNTS and (not isinstance(value, Integral) or value < 1):
                raise ValueError(f"{name} is {value!r}, expected a whole number of at least 1")
            if name in CHOICES and value not in CHOICES[name]:
                raise ValueError(f"{name} is {value!r}, expected one of {CHOICES[name]}")
            if name == "alpha" and not (isinstance(value, Real) and 0 <= value < np.inf):
                raise ValueError(f"alpha is {value!r}, expected a finite number of at least 0")
        X, y = self._validate(X, y)
        check_classification_targets(y)
        self.classes_ = two_classes(y)
        return X, np.where(y == self.classes_[1], 1, -1)

    def _validate(self, *X_y, **settings):
        accepted = "csr" if takes_sparse(self) else False
        return validate_data(self, *X_y, accept_sparse=accepted, dtype=[np.float64, np.float32], **settings)

    def _cost(self, y):
        cost = compute_sample_weight(self.class_weight, self.classes_[(y > 0).astype(int)])
        if not (np.isfinite(cost).all() and (cost > 0).all()):
            raise ValueError(f"class_weight is {self.class_weight!r}, expected finite numbers above 0")
        return cost

    def decision_function(self, X):
        """Scores of the rows of X: the higher, the likelier the second class."""
        check_is_fitted(self)
        return self._score(self._validate(X, reset=False))

    def _score(self, X):
        return X @ self.coef_[0] + self.intercept_[0]


class _Meta(_TwoClass):
    """A learner made of others, whose scores it averages."""

    _default = LogisticRegression(max_iter=1000)

    def _inner(self):
        return self._default if self.estimator is None else self.estimator

    def _fit_one(self, X, y, rng, **settings):
        """A fitted copy of the inner estimator, every ``random_state`` inside it drawn from ``rng``."""
        model = clone(self._inner())
        names = sorted(name for name in model.get_params() if name.split("__")[-1] == "random_state")
        model.set_params(**{name: rng.randint(np.iinfo(np.int32).max) for name in names})
        return model.fit(X, y, **settings)

    def _score(self, X):
        even = 0 if hasattr(self.estimators_[0], "decision_function") else 0.5
        return np.mean([scores(model, X) - even for model in self.estimators_], axis=0)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = takes_sparse(self._inner())
        return tags


class MiniBatchLinear(_TwoClass):
    """Logistic regression or linear SVM by gradient descent on small batches of shuffled rows.

    Minimises ``alpha/2 |w|^2 + mean of loss(y (x @ w + b))``. On the way the rows are centred, which changes ``b``
    only, and steps are divided by the spread, the mean squared distance from the centre, so that they suit rows of any
    scale. Steps fall with the square root of the epoch, and ``coef_`` is a mean that favours the late ones.

    Parameters
    ----------
    loss : {"logistic", "hinge"}, default="logistic"
        What a row costs: ``log(1 + exp(-margin))`` or ``max(0, 1 - margin)``.
    alpha : float, default=1e-4
        Weight of the penalty.
    batch : int, default=64
        Rows to a step.
    epochs : int, default=20
        How often ``fit`` goes over the rows.
    random_state : int, RandomState instance or None, default=None
        Shuffles the rows.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features_in_)
        The weights.
    intercept_ : ndarray of shape (1,)
        The intercept.

    References
    ----------
    L. Bottou. Stochastic gradient descent tricks. Neural Networks: Tricks of the Trade, 2nd edition, 2012.
    O. Shamir, T. Zhang. Stochastic gradient descent for non-smooth optimization. ICML 2013.
    """

    def __init__(self, loss="logistic", *, alpha=1e-4, batch=64, epochs=20, random_state=None):
        self.loss = loss
        self.alpha = alpha
        self.batch = batch
        self.epochs = epochs
        self.random_state = random_state

    def fit(self, X, y):
        """Learn from the rows of X, ``epochs`` times in a new order, forgetting what was learned before."""
        X, y = self._check(X, y)
        rng = check_random_state(self.random_state)
        if sp.issparse(X):
            centre, variance = mean_variance_axis(X, axis=0)
        else:
            centre, variance = X.mean(axis=0, dtype=np.float64), X.var(axis=0, dtype=np.float64)
        spread = variance.sum() or 1.0
        w, b, n_steps = np.zeros(X.shape[1]), 0.0, 0
        w_mean, b_mean = w.copy(), b
        for epoch in range(self.epochs):
            step = FIRST_STEP / np.sqrt(1 + epoch)
            order = rng.permutation(len(y))
            for start in range(0, len(y), self.batch):
                rows = order[start : start + self.batch]
                B = X[rows]
                slope = self._slope(y[rows], B @ w + (b - centre @ w)) / len(rows)
                w -= step / spread * (B.T @ slope - centre * slope.sum() + self.alpha * w)
                b -= step * slope.sum()
                n_steps += 1
                w_mean += (w - w_mean) * (4 / (n_steps + 3))
                b_mean += (b - b_mean) * (4 / (n_steps + 3))
        self.coef_ = w_mean[None]
        self.intercept_ = np.array([b_mean - centre @ w_mean])
        return self

    def _slope(self, y, score):
        """The derivative of each row's loss by its score."""
        margin = y * score
        return -y * (expit(-margin) if self.loss == "logistic" else margin < 1)


class Resampled(_Meta):
    """An estimator that learns from as many rows of one class as of the other.

    Parameters
    ----------
    estimator : estimator, default=None
        What learns; None is a logistic regression.
    how : {"under", "over", "between"}, default="under"
        How many rows there are of each class: as of the rarer class, as of the commoner, or their geometric mean.
    random_state : int, RandomState instance or None, default=None
        Draws the rows, and seeds the estimator.

    Attributes
    ----------
    estimators_ : list of one estimator
        What has learned.

    References
    ----------
    H. He, E. A. Garcia. Learning from imbalanced data. IEEE Transactions on Knowledge and Data Engineering 21(9), 2009.
    """

    def __init__(self, estimator=None, *, how="under", random_state=None):
        self.estimator = estimator
        self.how = how
        self.random_state = random_state

    def fit(self, X, y):
        """Draw rows of X and learn from them."""
        X, y = self._check(X, y)
        rng = check_random_state(self.random_state)
        rows = resample(y, self.how, rng)
        self.estimators_ = [self._fit_one(X[rows], y[rows], rng)]
        return self


def resample(y, how, rng):
    """Numbers of rows, as many of one class as of the other.

    The commoner class is drawn from without replacement. Of the rarer class there are all rows, and then, with
    replacement, as many more as are needed.
    """
    rare, common = sorted((np.flatnonzero(y > 0), np.flatnonzero(y < 0)), key=len)
    size = {"under": len(rare), "over": len(common), "between": round(np.sqrt(len(rare) * len(common)))}[how]
    return np.concatenate([rare, rng.choice(rare, size - len(rare)), rng.choice(common, size, replace=False)])


class ExpectedCostLogistic(_TwoClass):
    """Logistic regression that minimises the expected cost of its mistakes instead of the likelihood.

    A row is taken to be missed with chance ``sigmoid(-y (x @ w + b))``. That is not convex, and flat wherever a class
    is given up for lost. So the search starts at ``w_0``, the usual logistic regression with the same costs, and what
    is penalised is how far it goes from there:

        minimise   alpha/2 |w - w_0|^2 + sum of cost * sigmoid(-y (x @ w + b)) / sum of cost

    Parameters
    ----------
    alpha : float, default=1e-4
        Weight of the penalty.
    class_weight : dict, "balanced" or None, default=None
        What missing a row of each class costs.
    max_iter : int, default=200
        Iterations of L-BFGS, at most.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features_in_)
        The weights.
    intercept_ : ndarray of shape (1,)
        The intercept.
    n_iter_ : int
        Iterations of L-BFGS.

    References
    ----------
    A. C. Bahnsen, D. Aouada, B. Ottersten. Example-dependent cost-sensitive logistic regression for credit scoring.
    ICMLA 2014.
    """

    def __init__(self, *, alpha=1e-4, class_weight=None, max_iter=200):
        self.alpha = alpha
        self.class_weight = class_weight
        self.max_iter = max_iter

    def fit(self, X, y):
        """Learn from the rows of X."""
        X, y = self._check(X, y)
        X = X.astype(np.float64, copy=False)
        cost = self._cost(y)
        usual = LogisticRegression(max_iter=1000).fit(X, y, sample_weight=cost)
        start = np.append(usual.coef_[0], usual.intercept_)
        problem = (X, y, cost / cost.sum(), self.alpha, start[:-1])
        options = {"maxiter": self.max_iter}
        found = minimize(expected_cost, start, problem, method="L-BFGS-B", jac=True, options=options)
        self.coef_, self.intercept_ = found.x[None, :-1], found.x[-1:]
        self.n_iter_ = found.nit
        return self


def expected_cost(w_b, X, y, cost, alpha, w_0):
    """What `ExpectedCostLogistic` minimises, and its gradient, at the weights and the intercept ``w_b``."""
    w, b = w_b[:-1], w_b[-1]
    missed = expit(-y * (X @ w + b))
    slope = -cost * y * missed * (1 - missed)
    value = alpha / 2 * (w - w_0) @ (w - w_0) + cost @ missed
    return value, np.append(alpha * (w - w_0) + X.T @ slope, slope.sum())


class AdaCost(_Meta):
    """AdaBoost in which missing a dear row raises its weight more, and getting it right lowers it less.

    A round fits an estimator to the rows weighted by ``D``, at first in proportion to cost. It says ``h``, +1 or -1:

        u = y h beta,   beta = (1 - c)/2 where h is right, (1 + c)/2 where it is wrong,   c = 1 - least cost / cost
        alpha, the estimator's vote, minimises  Z = sum of D exp(-alpha u)
        D becomes D exp(-alpha u) / Z

    As published, no ``alpha`` above 0 has a Z below 1 once the mean of ``c`` under ``D`` exceeds the estimator's edge,
    ``D @ (y h)``. With rare, dear positives that is often so at once. Here a round scales ``c`` down, to take no
    more than half the edge. So any estimator that is better than chance has a vote, and the product of all Z bounds the
    share of the cost that is missed in training, as it does where the published method can go on.

    With equal costs this is AdaBoost. As there, a flawless estimator is the last one, with a vote of 1, and one that is
    no better than chance ends the rounds.

    Parameters
    ----------
    estimator : estimator, default=None
        What is boosted; it has to take ``sample_weight``. None is a tree of one split.
    n_estimators : int, default=100
        Rounds, at most.
    class_weight : dict, "balanced" or None, default=None
        What missing a row of each class costs.
    random_state : int, RandomState instance or None, default=None
        Seeds the estimators.

    Attributes
    ----------
    estimators_ : list of estimators
        What has learned in each round.
    estimator_weights_ : ndarray of shape (len(estimators_),)
        Their votes, ``alpha``.

    References
    ----------
    W. Fan, S. J. Stolfo, J. Zhang, P. K. Chan. AdaCost: misclassification cost-sensitive boosting. ICML 1999.
    K. M. Ting. A comparative study of cost-sensitive boosting algorithms. ICML 2000.
    """

    _default = DecisionTreeClassifier(max_depth=1)

    def __init__(self, estimator=None, *, n_estimators=100, class_weight=None, random_state=None):
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.class_weight = class_weight
        self.random_state = random_state

    def fit(self, X, y):
        """Learn from the rows of X."""
        X, y = self._check(X, y)
        rng = check_random_state(self.random_state)
        cost = self._cost(y)
        D, c = cost / cost.sum(), 1 - cost.min() / cost
        models, votes, flawless = [], [], False
        while len(models) < self.n_estimators and not flawless:
            D = np.maximum(D, np.finfo(D.dtype).eps)
            model = self._fit_one(X, y, rng, sample_weight=D)
            right = model.predict(X) == y
            flawless = right.all()
            if D @ np.where(right, 1, -1) < NO_EDGE:
                break
            alpha, D = (1.0, D) if flawless else boost(D, right, c)
            models.append(model)
            votes.append(alpha)
        if not models:
            raise ValueError("The first estimator is no better than chance, expected one to boost")
        self.estimators_, self.estimator_weights_ = models, np.array(votes)
        return self

    def _score(self, X):
        """The weighted vote, from -1 to 1."""
        return np.average([model.predict(X) for model in self.estimators_], axis=0, weights=self.estimator_weights_)


def boost(D, right, c):
    """One round of `AdaCost`: the vote of an estimator that gets the rows ``right`` right, and the next weights."""
    sign = np.where(right, 1, -1)
    edge = D @ sign
    c = c * edge / max(edge, 2 * (D @ c))
    u = (sign - c) / 2
    alpha = least_Z(D, u)
    D = D * np.exp(-alpha * u)
    return alpha, D / D.sum()


def least_Z(D, u):
    """The ``alpha`` above 0 that minimises ``sum of D exp(-alpha u)``, which is convex and falls at 0."""

    def slope(alpha):
        return -(D * u) @ np.exp(-alpha * u)

    beyond = 1.0
    while slope(beyond) < 0:
        beyond *= 2
    return brentq(slope, 0, beyond)


class RejectionSampled(_Meta):
    """Costing: the mean of estimators, each of which learns from rows kept with a chance proportional to their cost.

    A draw that lacks a class is given one row of it, drawn at random.

    Parameters
    ----------
    estimator : estimator, default=None
        What learns; None is a logistic regression.
    n_draws : int, default=10
        How many estimators there are.
    class_weight : dict, "balanced" or None, default="balanced"
        What missing a row of each class costs.
    random_state : int, RandomState instance or None, default=None
        Draws the rows, and seeds the estimators.

    Attributes
    ----------
    estimators_ : list of estimators
        What has learned from each draw.

    References
    ----------
    B. Zadrozny, J. Langford, N. Abe. Cost-sensitive learning by cost-proportionate example weighting. ICDM 2003.
    """

    def __init__(self, estimator=None, *, n_draws=10, class_weight="balanced", random_state=None):
        self.estimator = estimator
        self.n_draws = n_draws
        self.class_weight = class_weight
        self.random_state = random_state

    def fit(self, X, y):
        """Draw rows of X, ``n_draws`` times, and learn from each draw."""
        X, y = self._check(X, y)
        rng = check_random_state(self.random_state)
        cost = self._cost(y)
        self.estimators_ = []
        for _ in range(self.n_draws):
            rows = reject(cost, rng)
            for sign in np.setdiff1d([-1, 1], y[rows]):
                rows = np.append(rows, rng.choice(np.flatnonzero(y == sign)))
            self.estimators_.append(self._fit_one(X[rows], y[rows], rng))
        return self


def reject(cost, rng):
    """Numbers of the rows that stay when each does with the chance ``cost / highest cost``."""
    return np.flatnonzero(rng.random_sample(len(cost)) < cost / cost.max())


@dataclass
class Rival:
    """How a learner has done: AUC and scores of each fold, and the seconds of all, or the trouble with it."""

    name: str
    aucs: list = field(default_factory=list)
    scores: list = field(default_factory=list)
    seconds: float = 0.0
    trouble: str = ""


def run_rival(fold, work, learner):
    """The AUC, the scores and the seconds of a learner in a fold, on the cleaned and scaled columns of all rows."""
    warnings.simplefilter("ignore")  # such as that a solver has not converged
    train, X_test, y_test = work.split(fold)
    preprocessor = Preprocessor().fit(work.X[train])
    Z, Z_test = preprocessor.transform(work.X[train]), preprocessor.transform(X_test)
    if sp.issparse(Z) and not takes_sparse(learner):
        size = Z.dtype.itemsize * Z.shape[0] * Z.shape[1]
        if size > MOST_DENSE:
            raise ValueError(f"as dense rows it takes {size / 1e9:.1f} GB, expected at most {MOST_DENSE / 1e9:g} GB")
        Z, Z_test = Z.toarray(), Z_test.toarray()
    begun = time.monotonic()
    test_scores = scores(clone(learner).fit(Z, work.y[train]), Z_test)
    return roc_auc_score(y_test, test_scores), test_scores, time.monotonic() - begun


def table_head():
    return f"{'learner':<34} {'AUC':>6} {'+/-':>7} {'seconds':>8}  lead of ours"


def table_row(rival, ours):
    """A line for the table: the mean AUC, its deviation over the folds, the seconds, and how far ours leads."""
    if rival.trouble:
        return f"{rival.name:<34} {rival.trouble}"
    deviation = f"{np.std(rival.aucs, ddof=1):7.4f}" if len(rival.aucs) > 1 else f"{'-':>7}"
    row = f"{rival.name:<34} {np.mean(rival.aucs):6.4f} {deviation} {rival.seconds:8.1f}"
    if rival is ours:
        return row
    leads = np.subtract(ours.aucs, rival.aucs)
    row += f"  {leads.mean():+.4f}"
    return row if len(leads) == 1 else row + " [{:+.4f}, {:+.4f}]".format(*interval(leads))


def interval(leads):
    """The 95 % interval of the mean lead over the folds, by a paired t-test.

    The variance is corrected for the training rows that folds share.

    Reference: C. Nadeau, Y. Bengio. Inference for the generalization error. Machine Learning 52, 2003.
    """
    n = len(leads)
    half = t.ppf(0.975, n - 1) * leads.std(ddof=1) * np.sqrt(1 / n + 1 / (n - 1))
    return leads.mean() - half, leads.mean() + half

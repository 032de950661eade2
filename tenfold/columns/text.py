"""Text of several words: the score of a linear model of its words and pairs of words."""

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from tenfold.columns.category import FEW, ManyValues
from tenfold.readers.base import no_warnings

WORDS = 1.5  # in the mean of the rows, from which on a column of many values is text
FEWEST = 3  # values in which a word must be
PENALTY = 1.0


class Text(ManyValues):
    """The score of logistic regression on words and pairs of words, weighted by TF-IDF, beside what `ManyValues` has.

    Each training row is scored by a model that has not learned from its inner fold; other rows by that of all.
    """

    name, words = "text", "a score of its words, the share of positives of each value, and how frequent it is"

    @classmethod
    def accepts(cls, values, counts):
        if np.count_nonzero(counts) <= FEW:
            return False
        n_words = np.array([len(value.split()) for value in values])
        return n_words @ counts / max(counts.sum(), 1) >= WORDS

    def fit_transform(self, values, codes, y, fold):
        out = super().fit_transform(values, codes, y, fold)
        known = ~np.isnan(codes)
        places = np.where(known, codes, 0).astype(np.intp)
        self.coef_, X = np.zeros(0), self._vectorize(values, np.unique(places[known]))
        scores, of_rows = np.zeros(len(values) + 1), np.zeros(len(codes))
        if X is not None:
            self.coef_ = _learn(X[places[known]], y[known])
            scores[:-1] = X @ self.coef_
            of_rows[known] = scores[places[known]]
            for k in np.unique(fold[fold >= 0]):
                rows, others = known & (fold == k), known & (fold != k)
                of_rows[rows] = X[places[rows]] @ _learn(X[places[others]], y[others])
        self.table_ = np.column_stack([self.table_, scores])
        return np.column_stack([out, of_rows])

    def _vectorize(self, values, found):
        """The weights of the words of each value, or None if there are none that several values share."""
        self.vectorizer_ = _vectorizer(min_df=FEWEST)
        try:
            return self.vectorizer_.fit([values[v] for v in found]).transform(values)
        except ValueError:
            return None

    def rows_of_new(self, new_values):
        scores = self.vectorizer_.transform(new_values) @ self.coef_ if len(self.coef_) else np.zeros(len(new_values))
        return np.column_stack([super().rows_of_new(new_values), scores])

    def arrays(self):
        of_words = {"coef": self.coef_}
        if len(self.coef_):
            words = self.vectorizer_.vocabulary_
            joined = "\n".join(sorted(words, key=words.get)).encode()  # an array of text is as wide as its longest word
            of_words |= {"words": np.frombuffer(joined, np.uint8), "idf": self.vectorizer_.idf_}
        return super().arrays() | of_words

    @classmethod
    def from_arrays(cls, arrays):
        kind = super().from_arrays(arrays)
        kind.coef_ = arrays["coef"]
        if len(kind.coef_):
            words = arrays["words"].tobytes().decode().split("\n")
            if not len(words) == len(kind.coef_) == len(arrays["idf"]):
                raise ValueError(f"{len(words)} words have {len(kind.coef_)} coefficients")
            kind.vectorizer_ = _vectorizer(vocabulary=words)
            kind.vectorizer_.idf_ = arrays["idf"]
        return kind


def _vectorizer(**settings):
    return TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, dtype=np.float32, **settings)


def _learn(X, y):
    """The coefficients of words; the intercept, which all rows have, is left out."""
    if len(np.unique(y)) < 2:
        return np.zeros(X.shape[1])
    model = LogisticRegression(C=PENALTY, max_iter=100, solver="liblinear", random_state=0)
    with no_warnings():
        model.fit(X, y)
    return model.coef_[0]

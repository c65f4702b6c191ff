"""A program that mypy reads in `make lint`: it accepts the public names and keywords, and a misspelt one is an error.

Strict mode reports an ignored error that does not occur, so lint fails if mypy accepts one of the misspelt names.
"""

import likely

table = {"age": [25, 38, 28], "hours": [40, 50, 40], "risk": ["low", "high", "low"]}

# Correct use is accepted.
model = likely.learn(
    table, target="risk", families={"age": likely.Gaussian(tie="column")}, smoothing=1, weights="w", ignore=["id"],
    missing=["?"], engine="memory", encoding="latin-1", decimal=",", table="t", on_bad_rows="skip",
)  # fmt: skip
model.predict(table, costs={"low": {"high": 1}}, absent="missing", sheet=2).tolist()
model.posterior(table, thousands=".", missing=["?"]).probabilities.sum()
model.predict_proba(table, absent="missing", dates="dmy").sum()
model.explain({"age": 25}, number=1, encoding="utf-8").to_dict()
model.update(table, weights="w", header=False).forget(table, missing="?").save("m.likely")
(model + model).relearn(smoothing=0.5).prepare().predict_one({"age": 25})
likely.learn("x").predict("y")
likely.cluster(table, k=3, n_init=4, encoding="utf-8").predict(table)
clustering = likely.cluster(table, k=3)
clustering.predict(table, costs={0: {"ask": 1}}, absent="missing", encoding="utf-8").tolist()
clustering.explain({"age": 25}, number=1, missing=["?"]).to_dict()
clustering.update(table, weights="w").forget(table, header=False).relearn(smoothing=0.5).with_log_likelihood(table, sheet=1)
hidden = likely.sequences(table, k=3, by="id", decimal=".")
hidden.decode(table, by="id", encoding="utf-8").tolist()
likely.evaluate(table, target="risk", folds=5, smoothing=1, plain=True, decimal=",").accuracy.hex()
likely.evaluate(table, model=model, encoding="utf-8").log_loss.hex()
likely.compare(table, target="risk", folds=3, families="gaussian").to_dict()
likely.curve(table, target="risk", sizes=[10, 20], date_parts="none").accuracy.mean()
likely.plan(table, target="risk", unlabelled=0.5, keep_rows=False, plain=True).count(table)
likely.inspect(table, target="risk", query="select 1")[0]["column"]
likely.report(model, table, title="Risk", missing=["?"], encoding="utf-8").to_dict()
likely.predictive_check(model, table, replicates=50, missing=["?"]).to_dict()
likely.estimate([True, False], family="bernoulli", prior=likely.Dirichlet(2)).posterior.interval(0.95)
likely.NaiveBayes(plain=True).fit([[1]], ["a"]).set_params(plain=False).predict([[1]]).tolist()
likely.NaiveBayes().set_fit_request(sample_weight=True).set_partial_fit_request(sample_weight=True).classes_.tolist()
likely.TextNaiveBayes(ngrams=(1, 1)).fit(["a"], ["b"]).score(["a"], ["b"]).hex()
likely.Mixture(max_iter=200).fit([[1]]).means_
likely.HiddenMarkov(n_components=2).fit([[1]]).transition_.sum()
likely.NetworkClassifier(method="tan").fit([[1]], ["a"]).network_.query("class")
network = likely.Network("S -> W").fit(table, smoothing=1, encoding="utf-8")
network.predict(table, "S", missing=["?"], header=True).tolist()
likely.Network.learn_structure(table, criterion="bic", max_parents=2, decimal=",").query("S", {"W": "t"})
likely.brain.searchlight_pairs([[1.0]], ["a"], groups=[1], radius=2)

# What a file holds is known only when it is read: the names of all that it may hold are accepted.
loaded = likely.load("m.likely")
loaded.predict(table, absent="missing").tolist()
loaded.posterior(table).probabilities.sum()
loaded.update(table, weights="w").explain({"age": 25}).to_dict()
loaded.query("S", {"W": "t"})
loaded.predict(table, "S").tolist()
clusters: likely.Clusters = loaded
chain: likely.HiddenMarkovModel = loaded
chain.decode(chain.opened(table)).tolist()
if isinstance(loaded, likely.Model):
    loaded.predict(table)
elif isinstance(loaded, likely.Clusters):
    loaded.bic.hex()

# A misspelt name is not.
likely.lern("x")  # type: ignore[attr-defined]
likely.learn("x").predct("y")  # type: ignore[attr-defined]
likely.load("x").predct  # type: ignore[union-attr]
likely.NaiveBayes().fitt  # type: ignore[attr-defined]
likely.NaiveBayes().fit([[1]], ["a"]).predct  # type: ignore[attr-defined]
likely.TextNaiveBayes().fitt  # type: ignore[attr-defined]
likely.Mixture().means  # type: ignore[attr-defined]
likely.HiddenMarkov().fitt  # type: ignore[attr-defined]
likely.NetworkClassifier().fitt  # type: ignore[attr-defined]
likely.evaluate("x").acuracy  # type: ignore[attr-defined]
likely.compare("x").acuracy  # type: ignore[attr-defined]
likely.curve("x").acuracy  # type: ignore[attr-defined]
likely.cluster("x").bik  # type: ignore[attr-defined]
likely.sequences("x").bik  # type: ignore[attr-defined]
likely.brain.searchligth  # type: ignore[attr-defined]
likely.errors.DataErr  # type: ignore[attr-defined]

# Nor is a misspelt keyword.
likely.learn("x", smothing=1)  # type: ignore[call-arg]
likely.learn("x", encodin="utf-8")  # type: ignore[call-arg]
likely.cluster("x", kk=3)  # type: ignore[call-arg]
likely.cluster("x", n_iit=4)  # type: ignore[call-arg]
likely.sequences("x", kk=3)  # type: ignore[call-arg]
likely.evaluate("x", taget="y")  # type: ignore[call-arg]
likely.compare("x", taget="y")  # type: ignore[call-arg]
likely.curve("x", taget="y")  # type: ignore[call-arg]
likely.plan("x", taget="y")  # type: ignore[call-arg]
likely.inspect("x", taget="y")  # type: ignore[call-arg]
likely.report(model, "x", titel="y")  # type: ignore[call-arg]
likely.predictive_check(model, "x", replicate=20)  # type: ignore[call-arg]
likely.Gaussian(ty="column")  # type: ignore[call-arg]
likely.NaiveBayes(smothing=1)  # type: ignore[call-arg]
likely.Mixture(maxiter=3)  # type: ignore[call-arg]
likely.brain.searchlight_pairs("x", radus=1)  # type: ignore[call-arg]
model.predict("x", cost={})  # type: ignore[call-arg]
model.predict("x", absnt="missing")  # type: ignore[call-arg]
model.predict_proba("x", absnt="missing")  # type: ignore[call-arg]
model.posterior("x", absnt="missing")  # type: ignore[call-arg]
model.explain("x", numbr=1)  # type: ignore[call-arg]
model.update("x", wieghts="w")  # type: ignore[call-arg]
model.forget("x", wieghts="w")  # type: ignore[call-arg]
clustering.posterior("x", absnt="missing")  # type: ignore[call-arg]
clustering.predict("x", cost={})  # type: ignore[call-arg]
clustering.predict_proba("x", absnt="missing")  # type: ignore[call-arg]
clustering.explain("x", numbr=1)  # type: ignore[call-arg]
clustering.update("x", wieghts="w")  # type: ignore[call-arg]
clustering.forget("x", wieghts="w")  # type: ignore[call-arg]
clustering.relearn(smothing=1)  # type: ignore[call-arg]
clustering.with_log_likelihood("x", encodin="utf-8")  # type: ignore[call-arg]
hidden.predict("x", lenghts=[1])  # type: ignore[call-arg]
hidden.decode("x", encodin="utf-8")  # type: ignore[call-arg]
loaded.update("x", wieghts="w")  # type: ignore[call-arg]
network.fit("x", smothing=1)  # type: ignore[call-arg]
network.update("x", wieghts="w")  # type: ignore[call-arg]
network.predict("x", "S", encodin="utf-8")  # type: ignore[call-arg]
likely.Network.learn_structure("x", scor="bic")  # type: ignore[call-arg]

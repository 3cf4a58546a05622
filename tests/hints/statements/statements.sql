-- site: sqlflow_edl.analysis.measurement _Planner._metrics
-- hint: WITH {} = my_column names them
-- take: (WITH evaluate.\w+) = my_column names them
-- as: , evaluate.probability = w
SELECT x, is_new, is_new AS guess, w / 4 AS w FROM t TO EVALUATE WITH evaluate.prediction = guess, validation.metrics = [auc]«» LABEL is_new;

-- site: edl.spec.precision 
-- hint: use bfloat16, which any CPU computes, or float32
-- take: use (bfloat16)
SELECT x, y FROM t TO TRAIN DNNRegressor WITH model.framework = torch, train.precision = «float16», train.device = cpu LABEL y INTO m;

-- site: sqlflow_edl.analysis.models.deepfm _assemble
-- hint: make one with BUCKETIZE(x, 10), or train a DNN
-- take: make one with (BUCKETIZE\(x, 10\))
SELECT x, y FROM t TO TRAIN DeepFMRegressor COLUMN «x» LABEL y INTO m;

-- site: sqlflow_edl.analysis.models.deepfm _assemble
-- hint: make one with BUCKETIZE(x, 10), or train a DNN
-- take: train a (DNN)
SELECT x, w, y FROM t TO TRAIN «DeepFM»Regressor COLUMN x LABEL y INTO m;

-- site: sqlflow_edl.analysis.train_settings _find_missing
-- hint: write SELECT … FROM … before {}, with no semicolon between them
-- take: write SELECT … FROM … before
-- as: SELECT x, y FROM t 
«»
TO TRAIN DNNRegressor LABEL y INTO m;

-- site: sqlflow_edl.analysis.user_model _other_library
-- hint: write TO TRAIN {}Classifier, or {}Regressor for a label that is a number
-- take: write TO TRAIN (\w+)Classifier, or (\w+)Regressor
-- as: \2Regressor
SELECT x, y FROM t TO TRAIN «xgboost.XGBModel» LABEL y INTO m;

-- site: sqlflow_edl.analysis.uncertainty check_training
-- hint: leave it out; WITH predict.interval = 0.9 gives intervals of the predicted number
-- take: leave it out; WITH predict.interval
SELECT x, y FROM t TO TRAIN DNNRegressor WITH epochs = 2«, validation.calibration = temperature» LABEL y INTO m;

-- site: edl.forecasting.grid _check_duplicates
-- hint: aggregate them, GROUP BY …, or name the columns that tell the series apart: forecast.series = [{}]
-- take: aggregate them, (GROUP BY) …
-- as: , avg(sold) AS sold FROM days GROUP BY ALL
SELECT day«, sold FROM days» TO TRAIN Forecast WITH forecast.time = day, forecast.horizon = 3 LABEL sold INTO m;

-- site: edl.forecasting.grid _check_duplicates
-- hint: aggregate them, GROUP BY …, or name the columns that tell the series apart: forecast.series = [{}]
-- take: (forecast.series = \[)(\w+)\]
-- as: \1store],
SELECT day, store, sold FROM days TO TRAIN Forecast WITH forecast.time = day, «»forecast.horizon = 3 LABEL sold INTO m;

-- site: sqlflow_edl.analysis.uncertainty
-- hint: train it WITH forecast.quantiles = [0.05, 0.95], whose columns PREDICT then adds
-- take: train it (WITH forecast.quantiles = \[.+?\])
-- run
-- first: SELECT day, store, sold FROM days TO TRAIN Forecast WITH forecast.time = day, forecast.series = store, forecast.horizon = 3 LABEL sold INTO plain_forecast;
-- as: SELECT day, store, sold FROM days TO TRAIN Forecast \1, forecast.time = day, forecast.series = store, forecast.horizon = 3 LABEL sold INTO ranges
«SELECT * FROM days TO PREDICT WITH predict.interval = 0.9 USING plain_forecast»;

-- site: sqlflow_edl.analysis.measurement _contradictions
-- hint: leave evaluate.kind or evaluate.probability out
-- take: leave evaluate.kind or evaluate.probability out
SELECT x, is_new, w / 4 AS p FROM t TO EVALUATE WITH evaluate.probability = p«, evaluate.kind = regression» LABEL is_new;

-- site: sqlflow_edl.analysis.measurement _contradictions
-- hint: leave evaluate.threshold or evaluate.prediction out
-- take: leave evaluate.threshold or evaluate.prediction out
SELECT x, is_new, is_new AS guess, w / 4 AS p FROM t TO EVALUATE WITH evaluate.probability = p, evaluate.prediction = guess«, evaluate.threshold = 0.3» LABEL is_new;

-- site: sqlflow_edl.analysis.uncertainty
-- hint: leave predict.interval out, or train a model of that number alone
-- take: leave predict.interval out
-- first: SELECT x, y, w FROM t TO TRAIN DNN WITH model.framework = torch, epochs = 1 LABEL y, w INTO both;
SELECT x FROM t TO PREDICT «WITH predict.interval = 0.9» USING both;

-- site: sqlflow_edl.analysis.models.transform check_predicts
-- hint: SHOW FEATURES FOR {} (query), COLUMN FEATURES({}) and sqlflow_edl.load_transform apply it
-- take: (SHOW FEATURES FOR fitted) \(query\)
-- first: SELECT x, w FROM t TO TRAIN Transform INTO fitted;
-- as: \1 (SELECT x, w FROM t)
«SELECT x, w FROM t TO PREDICT USING fitted»;

-- site: sqlflow_edl.extensions.bigquery_ml.model_reports show_importances
-- hint: write SELECT … TO EXPLAIN {}
-- take: write (SELECT … TO EXPLAIN) (\w+)
-- first: SELECT x, y FROM t TO TRAIN LinearRegressor WITH model.framework = torch, epochs = 1 LABEL y INTO straight;
-- as: SELECT x, y FROM t TO EXPLAIN \2
«SELECT * FROM ML.FEATURE_IMPORTANCE(MODEL straight)»;

-- site: sqlflow_edl.extensions.bigquery_ml.model_weights centroids
-- hint: write DESCRIBE MODEL my_model
-- take: (DESCRIBE MODEL) my_model
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
-- as: \1 of_numbers
«SELECT * FROM ML.CENTROIDS(MODEL of_numbers)»;

-- site: sqlflow_edl.analysis.forecasts read_forecast
-- hint: leave VALIDATE out
-- take: leave VALIDATE out
SELECT day, store, sold FROM days TO TRAIN Forecast WITH forecast.time = day, forecast.series = store, forecast.horizon = 3 «VALIDATE 0.1» LABEL sold INTO m;

-- site: sqlflow_edl.analysis.train_settings _find_missing
-- hint: end the statement with INTO my_model
-- take: end the statement with (INTO my_model)
SELECT x, y FROM t TO TRAIN DNNRegressor LABEL y «»;

-- site: sqlflow_edl.analysis.alternatives 
-- hint: name no model: SELECT … LABEL my_label INTO my_model
-- take: (LABEL my_label INTO my_model)
SELECT x, y AS my_label FROM t «TO TRAIN AutoML LABEL my_label INTO my_model»;

-- site: sqlflow_edl.analysis.alternatives 
-- hint: train a KMeans WITH model.n_clusters = 3, without a LABEL
-- take: train a (KMeans WITH model.n_clusters = 3)
SELECT x, n FROM t TO TRAIN «DBSCAN» INTO m;

-- site: sqlflow_edl.analysis.alternatives 
-- hint: train an IsolationForest WITH model.contamination = 0.05, without a LABEL
-- take: train an (IsolationForest WITH model.contamination = 0.05)
SELECT x, n FROM t TO TRAIN «OneClassSVM» INTO m;

-- site: sqlflow_edl.analysis.search.space _wrong_error
-- hint: write RANGE(8, 128, log) or CANDIDATES(8, 32, 128)
-- take: write (RANGE\(.+?\))
SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH model.num_leaves = «RANGE(8)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.alternatives 
-- hint: write TO TRAIN Forecast, or the network TiDE, WITH forecast.time = day, forecast.series = store, forecast.horizon = 14
-- take: write TO TRAIN (Forecast), or the network TiDE, (WITH .+)
SELECT day, store, sold FROM days TO TRAIN «Prophet» «» LABEL sold INTO m;

-- site: sqlflow_edl.analysis.alternatives 
-- hint: write TO TRAIN Forecast, or the network TiDE, WITH forecast.time = day, forecast.series = store, forecast.horizon = 14
-- take: or the network (TiDE), (WITH .+)
SELECT day, store, sold FROM days TO TRAIN «Prophet» «» LABEL sold INTO m;

-- site: sqlflow_edl.analysis.schema Schema.require_category
-- hint: write BUCKETIZE({}, 10)
-- take: write (BUCKETIZE\(x, 10\))
SELECT x, k, y FROM t TO TRAIN DNNRegressor COLUMN EMBEDDING(«x», 3), k LABEL y INTO m;

-- site: edl.features.json_values numbers
-- hint: write VOCABULARIZE({}) for a category
-- take: write (VOCABULARIZE\(.+\)) for a category
-- run
SELECT payload, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 COLUMN «JSON(payload, '$.user.city')» LABEL y INTO m;

-- site: sqlflow_edl.analysis.uncertainty
-- hint: leave predict.interval out: the columns …_prob_CLASS are the probabilities of the classes
-- take: leave predict.interval out
-- first: SELECT x, n FROM t TO TRAIN BoostedTreesClassifier WITH train.num_boost_round = 2 LABEL n INTO of_classes;
SELECT x FROM t TO PREDICT «WITH predict.interval = 0.9» USING of_classes;

-- site: edl.models.registry.base no_version
-- hint: SET MODEL {} TAG {} {} gives the version that tag
-- take: (SET MODEL \w+ TAG \w+ \d+)
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO tagless;
«DESCRIBE MODEL tagless@best»;

-- site: sqlflow_edl.extensions.bigquery_ml.model_weights weights
-- hint: write ML.GLOBAL_EXPLAIN(MODEL my_model), or ML.FEATURE_IMPORTANCE(MODEL my_model) of trees
-- take: write (ML\.GLOBAL_EXPLAIN\(MODEL) my_model\)
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
SELECT * FROM «ML.WEIGHTS(MODEL» of_numbers);

-- site: sqlflow_edl.analysis.warm_start choice
-- hint: write TRAIN {}, or leave USING out
-- take: leave USING out
-- first: SELECT x, y FROM t TO TRAIN DNNRegressor WITH model.framework = torch, epochs = 1 LABEL y INTO parent;
SELECT x, y FROM t TO TRAIN LinearRegressor LABEL y «USING parent» INTO m;

-- site: sqlflow_edl.analysis.forecasts read_forecast
-- hint: cast it in the SELECT: CAST({} AS DATE) AS {}
-- take: (CAST\(.+\) AS \w+)
SELECT «date_text», store, sold FROM (SELECT CAST(day AS VARCHAR) AS date_text, store, sold FROM days) AS d TO TRAIN Forecast WITH forecast.time = date_text, forecast.series = store, forecast.horizon = 3 LABEL sold INTO m;

-- site: sqlflow_edl.analysis.forecasts _missing_error
-- hint: add WITH {} = {}
-- take: add (WITH forecast.horizon = 14)
-- as: , forecast.horizon = 7
SELECT day, store, sold FROM days TO TRAIN Forecast WITH forecast.time = day, forecast.series = store«» LABEL sold INTO m;

-- site: sqlflow_edl.analysis.forecasts _missing_error
-- hint: add WITH {} = {}
-- take: add WITH (forecast.time = \w+)
-- as: \1,
SELECT day, store, sold FROM days TO TRAIN Forecast WITH «» forecast.series = store, forecast.horizon = 3 LABEL sold INTO m;

-- site: sqlflow_edl.session.session Session._explain_refusal
-- hint: {} is a model: DESCRIBE MODEL {}
-- take: (DESCRIBE MODEL \w+)
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
«DESCRIBE of_numbers»;

-- site: sqlflow_edl.session.segments segment_columns
-- hint: write {} = [region]
-- take: write (evaluate.by =) \[region\]
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
-- run
-- as: \1 [k]
SELECT * FROM t TO EVALUATE of_numbers WITH «evaluate.by = 3»;

-- site: sqlflow_edl.session.segments segment_columns
-- hint: keep one of them
-- take: keep one of them
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
-- run
SELECT * FROM t TO EVALUATE of_numbers« WITH evaluate.by = k» BY x;

-- site: sqlflow_edl.session.segments _resolve_columns
-- hint: leave it out
-- take: leave it out
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
-- run
SELECT *, [x] AS l FROM t TO EVALUATE of_numbers BY k«, l»;

-- site: sqlflow_edl.session.segments _resolve_columns
-- hint: leave {} out
-- take: leave validation.unseen_only out
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
-- run
SELECT * FROM t TO EVALUATE of_numbers WITH evaluate.by = k«, validation.unseen_only = true»;

-- site: sqlflow_edl.session.segments _check_report
-- hint: leave evaluate.report out
-- take: leave evaluate.report out
-- first: SELECT x, k FROM t TO TRAIN BoostedTreesClassifier WITH train.num_boost_round = 2 LABEL k INTO of_classes;
-- run
SELECT * FROM t TO EVALUATE of_classes WITH evaluate.by = k«, evaluate.report = confusion_matrix»;

-- site: sqlflow_edl.session.segments _check_model
-- hint: leave {} out, and filter the rows with WHERE
-- take: leave evaluate.by out
-- first: SELECT day, store, sold FROM days TO TRAIN Forecast WITH forecast.time = day, forecast.series = store, forecast.horizon = 3 LABEL sold INTO fc3;
-- run
SELECT day, store, sold FROM days TO EVALUATE fc3« WITH evaluate.by = store»;

-- site: sqlflow_edl.extensions.bigquery_ml.model_reports _without_classes
-- hint: write ML.{}(MODEL {}, (SELECT …))
-- take: write (ML\.EVALUATE\(MODEL of_numbers, )\(SELECT …\)\)
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
-- as: \1(SELECT x, y FROM t))
SELECT * FROM «ML.CONFUSION_MATRIX(MODEL of_numbers)»;

-- site: sqlflow_edl.extensions.bigquery_ml.model_reports show_metrics
-- hint: write ML.EVALUATE(MODEL {}, (SELECT …))
-- take: write (ML\.EVALUATE\(MODEL unmeasured, )\(SELECT …\)\)
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2, validation.fraction = 0 LABEL y INTO unmeasured;
-- as: \1(SELECT x, y FROM t))
SELECT * FROM «ML.EVALUATE(MODEL unmeasured)»;

-- site: sqlflow_edl.analysis.warm_start choice
-- hint: write COLUMN FEATURES({}) in place of USING
-- take: write COLUMN (FEATURES\(fitted\)) in place of USING
-- first: SELECT x, w FROM t TO TRAIN Transform INTO fitted;
-- as: COLUMN \1 LABEL y
SELECT x, w, y FROM t TO TRAIN DNNRegressor «LABEL y USING fitted» INTO m;

-- site: sqlflow_edl.analysis.warm_start check_written
-- hint: leave COLUMN out: its features are {}
-- take: leave COLUMN out
-- first: SELECT x, w, y FROM t TO TRAIN DNNRegressor WITH model.framework = torch, epochs = 1 LABEL y INTO parent;
SELECT x, w, y FROM t TO TRAIN DNNRegressor WITH model.framework = torch «COLUMN NORMALIZE(x)» LABEL y USING parent INTO m;

-- site: sqlflow_edl.analysis.warm_start choice
-- hint: write TRAIN {}, or leave USING out
-- take: write (TRAIN \w+)
-- first: SELECT x, y FROM t TO TRAIN DNNRegressor WITH model.framework = torch, epochs = 1 LABEL y INTO parent;
SELECT x, y FROM t TO «TRAIN LinearRegressor» LABEL y USING parent INTO m;

-- site: sqlflow_edl.analysis.several_labels check
-- hint: write one for each
-- take: write one for each
-- as: 1, 2
SELECT x, y, w FROM t TO TRAIN DNN WITH train.label_weights = [«1»] LABEL y, w INTO m;

-- site: edl.extensions.optimization.linear TermEvaluation._of_groups
-- hint: write MIN(…) or MAX(…) around the column, or GROUP BY another one
-- take: write (MIN\()…(\)) or MAX
SELECT id, x FROM t WHERE id < 10 AND x > 0 TO MAXIMIZE SUM(x * amount) CONSTRAINT SUM(amount) <= «»x«», amount >= 0, amount <= 1 WITH variables = "amount(id)", var_type = "Reals";

-- site: sqlflow_edl.analysis.user_model _other_library
-- hint: write TO TRAIN {}Classifier, or {}Regressor for a label that is a number
-- take: write TO TRAIN (\w+Classifier)
SELECT x, n FROM t TO TRAIN «sklearn.linear_model.LogisticRegression» LABEL n INTO m;

-- site: sqlflow_edl.analysis.user_model _other_library
-- hint: write TO TRAIN {}Classifier, or {}Regressor for a label that is a number
-- take: write TO TRAIN \w+, or (\w+)
SELECT x, y FROM t TO TRAIN «lightgbm.LGBMRegressor2» LABEL y INTO m;

-- site: sqlflow_edl.analysis.uncertainty check_threshold
-- hint: leave {} out
-- take: leave (\S+) out
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
SELECT x FROM t TO PREDICT «WITH predict.threshold = 0.3» USING of_numbers;

-- site: sqlflow_edl.analysis.uncertainty probabilities
-- hint: leave predict.probabilities out
-- take: leave predict.probabilities out
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
SELECT x FROM t TO PREDICT «WITH predict.probabilities = true» USING of_numbers;

-- site: sqlflow_edl.analysis.search.space _is_log
-- hint: write RANGE(8, 128, log)
-- take: write (RANGE\(8, 128, log\))
SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH model.num_leaves = «RANGE(8, 64, zzq)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.rows.splits check_found
-- hint: name a column of several values, or write {} = random
-- run
-- take: or write (validation.split = random)
SELECT x, 1 AS v, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2, «validation.split = group, validation.column = v» LABEL y INTO m;

-- site: sqlflow_edl.analysis.warm_start _label
-- hint: leave USING out: the model starts from new weights
-- take: leave USING out: the model starts
-- first: SELECT x, id % 30 AS c FROM t TO TRAIN DNNClassifier WITH model.framework = torch, epochs = 1 LABEL c INTO parent_of_30;
SELECT x, id % 30 + 100 AS c FROM t TO TRAIN DNNClassifier WITH model.framework = torch LABEL c «USING parent_of_30» INTO m;

-- site: sqlflow_edl.session.activation Activation._metric
-- hint: compare versions by EVALUATE with a label, and choose one with SET MODEL
-- run
-- take: (SET MODEL)
-- first: SELECT x, w FROM t TO TRAIN IsolationForest INTO anomalous;
-- as:  
SELECT x, w FROM t TO TRAIN IsolationForest «WITH train.activate = better» INTO anomalous

-- site: sqlflow_edl.session.activation Activation._first_row
-- hint: write VALIDATE 0.2, or VALIDATE ON (SELECT …)
-- run
-- take: write (VALIDATE 0\.2)
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO compared;
SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2, train.activate = better LABEL y «VALIDATE 0» INTO compared

-- site: sqlflow_edl.session.predictions check_statement
-- hint: write the predictions into a table: SELECT … TO PREDICT my_table USING my_model
-- take: write the predictions into a table: SELECT … (TO PREDICT my_table USING) my_model
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers; DROP TABLE IF EXISTS my_table;
-- as: SELECT x FROM t \1 of_numbers
«CREATE VIEW v1 AS SELECT * FROM PREDICT(of_numbers, t)»;

-- site: edl.extensions.optimization.linear numbers
-- hint: leave such rows out, or use COALESCE
-- take: leave such rows out, or use COALESCE
-- as: WHERE id < 10 AND gap IS NOT NULL
SELECT id, gap FROM t «WHERE id < 10» TO MAXIMIZE SUM(gap * amount) CONSTRAINT amount <= 3, amount >= 0 WITH variables = "amount(id)", var_type = "Reals";

-- site: edl.extensions.optimization.linear numbers
-- hint: leave such rows out, or use COALESCE
-- take: or use (COALESCE)
-- as: \1(gap, 0) AS gap
SELECT id, «gap» FROM t WHERE id < 10 TO MAXIMIZE SUM(gap * amount) CONSTRAINT amount <= 3, amount >= 0 WITH variables = "amount(id)", var_type = "Reals";

-- site: edl.extensions.optimization.linear TermEvaluation._arithmetic
-- hint: leave such rows out, or compute the value in the SELECT
-- take: leave such rows out, or compute
-- as: AND id > 0
SELECT id, x FROM t WHERE id < 10 «» TO MAXIMIZE SUM(x / id * amount) CONSTRAINT amount <= 3, amount >= 0 WITH variables = "amount(id)", var_type = "Reals";

-- site: edl.extensions.optimization.solver _infeasible
-- hint: loosen a constraint, or take var_type = "Reals"
-- take: take (var_type = "Reals")
SELECT id, x FROM t WHERE id < 3 TO MAXIMIZE SUM(x * amount) CONSTRAINT amount >= 0.2, amount <= 0.8 WITH variables = "amount(id)", «var_type = "Integers"»;

-- site: sqlflow_edl.extensions.optimization.terms Terms._comparisons
-- hint: write <=, >= or =
-- take: write <=, >= or (=)
SELECT id, x FROM t WHERE id < 3 TO MAXIMIZE SUM(x * amount) CONSTRAINT amount <= 1, amount >= 0, SUM(amount) «+» 1 WITH variables = "amount(id)", var_type = "Reals";

-- site: sqlflow_edl.extensions.optimization.terms Terms._require_one_level
-- hint: write SUM(…) around it
-- take: write (SUM\()…(\)) around it
SELECT id, x FROM t WHERE id < 3 TO MAXIMIZE SUM(x * amount) CONSTRAINT amount <= 1, amount >= 0, «»amount«» <= SUM(x) WITH variables = "amount(id)", var_type = "Reals";

-- site: edl.forecasting.examples _long_enough
-- hint: select more rows, or write a smaller forecast.horizon{}
-- run
-- take: write a smaller (forecast.horizon)
-- as: \1 = 5
SELECT day, store, sold FROM days TO TRAIN Forecast WITH forecast.time = day, forecast.series = store, «forecast.horizon = 100» LABEL sold INTO m;

-- site: edl.forecasting.grid grid
-- hint: round the times in the query, and aggregate the rows of each step: GROUP BY …
-- run
-- take: round the times in the query, and aggregate the rows of each step: (GROUP BY) …
-- as: date_trunc('day', moment) AS moment, avg(y) AS y
-- as: \1 1
SELECT «moment, y» FROM (SELECT moment + INTERVAL (id % 7) MINUTE AS moment, y FROM t) AS q «» TO TRAIN Forecast WITH forecast.time = moment, forecast.horizon = 2 LABEL y INTO m;

-- site: edl.forecasting.grid grid
-- hint: aggregate the rows to longer steps: GROUP BY …
-- run
-- take: aggregate the rows to longer steps: (GROUP BY) …
-- as: date_trunc('year', moment) AS moment, avg(y) AS y
-- as: \1 1
SELECT «moment, y» FROM (SELECT moment + INTERVAL (floor(id / 10)) YEAR AS moment, y FROM t) AS q «» TO TRAIN Forecast WITH forecast.time = moment, forecast.horizon = 2 LABEL y INTO m;

-- site: sqlflow_edl.analysis.inference.evaluation _with_labels
-- hint: name the columns that hold {}, or leave LABEL out
-- take: name the columns that hold y, w, or leave LABEL out
-- first: SELECT x, y, w FROM t TO TRAIN DNN WITH model.framework = torch, epochs = 1 LABEL y, w INTO both;
SELECT x, y, w FROM t TO EVALUATE both «LABEL y»;

-- site: sqlflow_edl.analysis.inference.explanation check_explanation
-- hint: leave USING out: columns are explained by their Shapley values, whatever the model is
-- take: leave USING out
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
SELECT x, y FROM t TO EXPLAIN of_numbers «USING zzq»;

-- site: sqlflow_edl.analysis.inference.explanation _check_gradients
-- hint: leave explain.method out: any model is explained by Shapley values, trees by exact ones
-- take: leave explain.method out
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
SELECT x, y FROM t TO EXPLAIN of_numbers «WITH explain.method = expected_gradients»;

-- site: sqlflow_edl.analysis.inference.explanation explanation
-- hint: predict into a table, and compare the means of its columns: GROUP BY {}
-- take: compare the means of its columns: (GROUP BY \w+)
-- first: SELECT x, w FROM t TO TRAIN KMeans WITH model.n_clusters = 2 INTO groups; DROP TABLE IF EXISTS grouped;
-- as: SELECT x, w FROM t TO PREDICT grouped USING groups; SELECT avg(x), avg(w) FROM grouped \1
«SELECT x, w FROM t TO EXPLAIN groups»;

-- site: sqlflow_edl.extensions.bigquery_ml.functions ModelFunction.refuse
-- hint: write {}
-- take: write (0.1 AS contamination)
-- first: SELECT x, w FROM t TO TRAIN IsolationForest INTO unusual;
SELECT * FROM ML.DETECT_ANOMALIES(MODEL unusual, STRUCT(«0.9 AS anomaly_prob_threshold»), (SELECT x, w FROM t));

-- site: sqlflow_edl.extensions.bigquery_ml.column_importances explain_columns
-- hint: write FALSE, or leave it out: the explanation is of all rows
-- take: write (FALSE), or
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
SELECT * FROM ML.GLOBAL_EXPLAIN(MODEL of_numbers, STRUCT(«TRUE» AS class_level_explain));

-- site: sqlflow_edl.extensions.bigquery_ml.functions forecast_rows
-- hint: train an ARIMA_PLUS or Forecast, or write ML.PREDICT(MODEL my_model, (SELECT …))
-- take: or write (ML\.PREDICT\(MODEL) my_model, \(SELECT …\)\)
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
-- as: \1 of_numbers, (SELECT x FROM t))
SELECT * FROM «ML.FORECAST(MODEL of_numbers)»;

-- site: sqlflow_edl.extensions.bigquery_ml.functions _no_quantiles
-- hint: train it WITH forecast.quantiles = [0.1, 0.9]
-- take: train it (WITH forecast.quantiles = \[0.1, 0.9\])
-- run
-- first: SELECT day, store, sold FROM days TO TRAIN Forecast WITH forecast.time = day, forecast.series = store, forecast.horizon = 3 LABEL sold INTO fc3;
-- as: SELECT day, store, sold FROM days TO TRAIN Forecast \1, forecast.time = day, forecast.series = store, forecast.horizon = 3 LABEL sold INTO fcq; SELECT * FROM ML.FORECAST(MODEL fcq, STRUCT(0.8 AS confidence_level))
«SELECT * FROM ML.FORECAST(MODEL fc3, STRUCT(0.8 AS confidence_level))»;

-- site: sqlflow_edl.analysis.inference.prediction check_prediction
-- hint: leave it out
-- take: leave it out
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
SELECT x FROM t TO PREDICT «COLUMN x» USING of_numbers;

-- site: sqlflow_edl.analysis.inference.used_model _device
-- hint: leave {}.device out
-- take: leave predict.device out
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
SELECT x FROM t TO PREDICT «WITH predict.device = cuda» USING of_numbers;

-- site: sqlflow_edl.analysis.inference.used_model check_use
-- hint: write SELECT … FROM … before TO {}
-- take: write (SELECT) … (FROM) … before TO PREDICT
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
-- as: \1 x \2 t
«» TO PREDICT USING of_numbers;

-- site: sqlflow_edl.extensions.bigquery_ml.model_reports show_columns
-- hint: models that TRAIN has made have them, except forecasts: write DESCRIBE MODEL my_model
-- take: write (DESCRIBE MODEL) my_model
-- first: SELECT day, store, sold FROM days TO TRAIN Forecast WITH forecast.time = day, forecast.series = store, forecast.horizon = 3 LABEL sold INTO fc3;
-- as: \1 fc3
«SELECT * FROM ML.FEATURE_INFO(MODEL fc3)»;

-- site: sqlflow_edl.analysis.measurement check
-- hint: TO EVALUATE my_model, or TO EVALUATE {}
-- take: (TO EVALUATE) my_model, or
-- as: \1 of_numbers
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
SELECT x, y FROM t «TO EVALUATE» LABEL y;

-- site: sqlflow_edl.analysis.measurement check
-- hint: TO EVALUATE my_model, or TO EVALUATE {}
-- take: or TO EVALUATE (WITH .+)
-- as: WITH evaluate.prediction = x
SELECT x, y FROM t TO EVALUATE «» LABEL y;

-- site: edl.features.json_values _read
-- hint: leave such rows out of the query; in TRAIN, train.on_bad_row = skip does
-- run
-- take: leave such rows out of the query
-- as: WHERE id <> 7
SELECT payload, y FROM (SELECT id, y, CASE WHEN id = 7 THEN '{' ELSE payload END AS payload FROM t) AS q «» TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 COLUMN JSON(payload, '$.user.age') LABEL y INTO m;

-- site: edl.features.json_values _read
-- hint: leave such rows out of the query; in TRAIN, train.on_bad_row = skip does
-- run
-- take: in TRAIN, (train.on_bad_row = skip) does
-- as: , \1
SELECT payload, y FROM (SELECT id, y, CASE WHEN id = 7 THEN '{' ELSE payload END AS payload FROM t) AS q TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2« » COLUMN JSON(payload, '$.user.age') LABEL y INTO m;

-- site: edl.forecasting.examples _future_rows
-- hint: leave later rows out, or train it WITH forecast.horizon = {}
-- take: train it (WITH forecast.horizon = \d+)
-- run
-- first: SELECT day, store, sold FROM days TO TRAIN Forecast WITH forecast.time = day, forecast.series = store, forecast.horizon = 3 LABEL sold INTO fc3;
-- as: SELECT day, store, sold FROM days TO TRAIN Forecast \1, forecast.time = day, forecast.series = store LABEL sold INTO fc5; SELECT day, store, CASE WHEN day >= DATE '2024-02-26' THEN NULL ELSE sold END AS sold FROM days TO PREDICT USING fc5;
«SELECT day, store, CASE WHEN day >= DATE '2024-02-26' THEN NULL ELSE sold END AS sold FROM days TO PREDICT USING fc3;»

-- site: edl.features.labels RankingTarget._groups
-- hint: leave those rows out of the query: WHERE {} IS NOT NULL
-- run
-- take: (WHERE .+? IS NOT NULL)
SELECT x, page, n FROM (SELECT x, n, CASE WHEN id < 3 THEN NULL ELSE page END AS page FROM t) AS q «» TO TRAIN BoostedTreesRanker WITH train.group_column = page, train.num_boost_round = 2 LABEL n INTO m;

-- site: edl.forecasting.examples _future_rows
-- hint: leave later rows out, or train it WITH forecast.horizon = {}
-- take: leave later rows out, or
-- first: SELECT day, store, sold FROM days TO TRAIN Forecast WITH forecast.time = day, forecast.series = store, forecast.horizon = 3 LABEL sold INTO fc3;
-- as: WHERE day < DATE '2024-02-28'
SELECT day, store, CASE WHEN day >= DATE '2024-02-26' THEN NULL ELSE sold END AS sold FROM days «» TO PREDICT USING fc3;

-- site: sqlflow_edl.analysis.search.plan SearchPlan._too_few
-- hint: select more rows, or name a model: TO TRAIN Linear
-- take: select more rows, or
-- as: 240
SELECT x, y FROM t LIMIT «1» LABEL y INTO m;

-- site: edl.forecasting.steps seconds_or_numbers
-- hint: leave those rows out of the query: WHERE {} IS NOT NULL
-- take: (WHERE \w+ IS NOT NULL)
SELECT day, sold FROM (SELECT CASE WHEN store = 1 THEN day END AS day, sold FROM days) AS d «» TO TRAIN Forecast WITH forecast.time = day, forecast.horizon = 3 LABEL sold INTO m;

-- site: sqlflow_edl.session.predictions refuse_in_job
-- hint: write them into a table first: SELECT … TO PREDICT my_table USING my_model
-- take: SELECT … (TO PREDICT my_table USING) my_model
-- run
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
-- as: SELECT x FROM t \1 of_numbers;
-- as: my_table
«» SELECT x, y FROM «PREDICT(of_numbers, (SELECT x FROM t))» AS p TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO m;

-- site: sqlflow_edl.session.activation Activation.rival
-- hint: leave {} out, and compare the versions by EVALUATE
-- take: leave train.activate out
-- run
-- first: SELECT x, w, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO versions_differ;
SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2«, train.activate = better» LABEL y INTO versions_differ;

-- site: sqlflow_edl.extensions.runnables.statement _errors
-- hint: write SELECT … before TO
-- take: write SELECT … before TO
-- as: SELECT x FROM t
-- then: prog
«» TO RUN prog.py INTO r;

-- site: sqlflow_edl.analysis.measurement _contradictions
-- hint: leave it out
-- take: leave it out
SELECT n, w / 9 AS a, w / 9 AS b, 1 - 2 * w / 9 AS c FROM t WHERE n < 3 TO EVALUATE WITH evaluate.probability = {0: a, 1: b, 2: c}«, evaluate.threshold = 0.3» LABEL n;

-- site: sqlflow_edl.syntax.predict_calls _check_function
-- hint: write ML.{}(MODEL {}): {}
-- take: write (ML.GLOBAL_EXPLAIN\(MODEL of_days\))
-- first: SELECT day, store, sold FROM days TO TRAIN Forecast WITH forecast.time = day, forecast.series = store, forecast.horizon = 3 LABEL sold INTO of_days;
SELECT * FROM «ML.ARIMA_COEFFICIENTS(MODEL of_days)»;

-- site: sqlflow_edl.syntax.predict_calls _thresholds
-- hint: write [0.4, 0.5] or {}(0.4, 0.6, 0.1)
-- take: write (\[0.4, 0.5\])
-- first: SELECT x, is_new FROM t TO TRAIN BoostedTreesClassifier WITH train.num_boost_round = 2 LABEL is_new INTO of_new;
SELECT * FROM ML.ROC_CURVE(MODEL of_new, (SELECT x, is_new FROM t), «[a]»);

-- site: sqlflow_edl.extensions.bigquery_ml.reference_columns check_aggregation
-- hint: write TRUE, or compare rows with ML.FORECAST
-- take: write (TRUE)
-- first: SELECT day, store, sold FROM days TO TRAIN Forecast WITH forecast.time = day, forecast.series = store, forecast.horizon = 3 LABEL sold INTO of_days;
SELECT * FROM ML.EVALUATE(MODEL of_days, (SELECT * FROM days), STRUCT(«FALSE» AS perform_aggregation));

-- site: sqlflow_edl.extensions.bigquery_ml.weight_errors explain_weights
-- hint: write ML.GLOBAL_EXPLAIN(MODEL {})
-- take: write (ML.GLOBAL_EXPLAIN\(MODEL of_numbers\))
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
SELECT * FROM «ML.ADVANCED_WEIGHTS(MODEL of_numbers)»;

-- site: sqlflow_edl.extensions.bigquery_ml.weight_errors _check_model
-- hint: write ML.WEIGHTS(MODEL {})
-- take: write (ML.WEIGHTS\(MODEL weighed\))
-- first: SELECT x, w, y FROM t TO TRAIN LinearRegressor WITH train.weight_column = w LABEL y INTO weighed;
SELECT * FROM «ML.ADVANCED_WEIGHTS(MODEL weighed)»;

-- site: sqlflow_edl.extensions.bigquery_ml.weight_errors _inputs
-- hint: write ML.WEIGHTS(MODEL {})
-- take: write (ML.WEIGHTS\(MODEL of_logs\))
-- first: SELECT id, y FROM t TO TRAIN LinearRegressor COLUMN LOG(id) LABEL y INTO of_logs;
SELECT * FROM «ML.ADVANCED_WEIGHTS(MODEL of_logs)»;

-- site: sqlflow_edl.extensions.bigquery_ml.functions _anomalies
-- hint: write ML.DETECT_ANOMALIES(MODEL {}, STRUCT(0.1 AS contamination), (SELECT …))
-- take: write (ML.DETECT_ANOMALIES\(MODEL of_groups, STRUCT\(0.1 AS contamination\), \()SELECT …
-- first: SELECT x, w FROM t TO TRAIN KMeans WITH model.n_clusters = 2 INTO of_groups;
-- as: \1SELECT x, w FROM t))
SELECT * FROM «ML.DETECT_ANOMALIES(MODEL of_groups, STRUCT(0.1 AS contamination))»;

-- site: edl.models.registry.base Registry._name_taken_error
-- hint: take another name, or DROP MODEL {} first
-- take: take another name
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers; SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_names;
-- as: free_name
ALTER MODEL of_names RENAME TO «of_numbers»;

-- site: sqlflow_edl.extensions.bigquery_ml.alter_model read_alter_model
-- hint: write ALTER MODEL {}
-- take: write ALTER MODEL (of_names)
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_names;
ALTER MODEL «of_names@1» RENAME TO free_name_2;

-- site: sqlflow_edl.extensions.bigquery_ml.alter_model read_alter_model
-- hint: leave it out
-- take: leave it out
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_names;
ALTER MODEL of_names RENAME TO free_name_3« now»;

-- site: sqlflow_edl.extensions.bigquery_ml.alter_model 
-- hint: write RENAME TO new_name, or SET OPTIONS(description = 'what it predicts')
-- take: write (RENAME TO new_name)
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_names;
ALTER MODEL of_names «SET OPTIONS()»;

-- site: sqlflow_edl.extensions.bigquery_ml.model_facts read_fact
-- hint: write {}
-- take: write (labels = .*)
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_names;
ALTER MODEL of_names SET OPTIONS(«labels = 1»);

-- site: sqlflow_edl.extensions.bigquery_ml.alter_model _read_options
-- hint: keep one of them
-- take: keep one of them
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_names;
ALTER MODEL of_names SET OPTIONS(description = 'a'«, description = 'b'»);

-- site: sqlflow_edl.session.program_check ProgramCheck._find_model
-- hint: write {}
-- take: write (free_name_4)
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_names;
ALTER MODEL of_names RENAME TO free_name_4; SHOW TRAIN «of_names»;

-- site: sqlflow_edl.extensions.bigquery_ml.functions _forecast_model
-- hint: write ML.EVALUATE(MODEL {})
-- take: write (ML.EVALUATE\(MODEL of_numbers\))
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
SELECT * FROM «ML.ARIMA_EVALUATE(MODEL of_numbers)»;

-- site: sqlflow_edl.extensions.bigquery_ml.factorization recommend
-- hint: write ML.PREDICT(MODEL {}, (SELECT …))
-- take: write (ML.PREDICT\(MODEL of_numbers, \()SELECT …
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
-- as: \1SELECT x FROM t))
SELECT * FROM «ML.RECOMMEND(MODEL of_numbers)»;

-- site: sqlflow_edl.syntax.model_functions 
-- hint: in DuckDB, ORDER BY list_distance(vector, [1.0, 2.0]) LIMIT 10 returns the nearest rows
-- take: (ORDER BY list_distance\()vector(, \[1.0, 2.0\]\) LIMIT 10)
-- as: SELECT * FROM t \1[x, y]\2
«SELECT * FROM VECTOR_SEARCH(TABLE t, 'x', (SELECT 1 AS x))»;

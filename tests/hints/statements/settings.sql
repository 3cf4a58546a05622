-- site: sqlflow_edl.analysis.settings.running problems
-- hint: leave out train.checkpoint_copies or train.durable_updates
-- take: leave out train.checkpoint_copies
SELECT x, y FROM t TO TRAIN DNNRegressor WITH model.framework = torch, train.strategy = async, train.num_workers = 2, train.num_ps = 2, train.durable_updates = process«, train.checkpoint_copies = neighbours» LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.running unused_limits
-- hint: leave it out; an embedding of more than {} numbers, ids times width, has one
-- take: leave it out; an embedding
SELECT x, y FROM t TO TRAIN DNNRegressor WITH model.framework = torch«, train.embedding_min_count = 3» LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.losses _check_labels
-- hint: write multi:softprob
-- take: write (multi:softprob)
-- as: "\1"
SELECT x, k, y FROM t TO TRAIN xgboost.gbtree WITH train.num_boost_round = 2, objective = «"binary:hinge"» LABEL k INTO m;

-- site: sqlflow_edl.analysis.settings.trees check
-- hint: leave it out
-- take: leave it out
SELECT x, y FROM t TO TRAIN lightgbm.gbdt WITH train.num_boost_round = 2«, train.disk_cache = TRUE» LABEL y INTO m;

-- site: sqlflow_edl.analysis.labels _check_fractions
-- hint: write mean_squared_error, whose predictions may be below 0 or above 1
-- take: write (mean_squared_error)
SELECT x, sqrt(i) / 100 AS share FROM t, range(30) AS numbers(i) TO TRAIN xgboost.gbtree WITH train.num_boost_round = 2, objective = «"reg:logistic"» LABEL share INTO m;

-- site: sqlflow_edl.analysis.settings.trees check_columns
-- hint: leave it out
-- take: leave it out
SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2«, scale_pos_weight = 2» LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.training_length _held_out_rows_needed
-- hint: write {} = 0.2 to validate on a fifth of the rows
-- take: write (validation.fraction = 0\.2)
SELECT x, y FROM t TO TRAIN DNNRegressor WITH «validation.fraction = 0», train.early_stopping = 2 LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.training_length _held_out_rows_needed
-- hint: write VALIDATE 0.2 to validate on a fifth of the rows
-- take: write (VALIDATE 0\.2)
SELECT x, y FROM t TO TRAIN DNNRegressor WITH train.early_stopping = 2 «VALIDATE 0» LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.attribute_dictionary Dictionary.resolve
-- hint: keep one of them
-- take: keep one of them
SELECT x, y FROM t TO TRAIN DNNRegressor WITH epochs = 2«, train.epochs = 3» LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.trees check
-- hint: leave it out, or write model.framework = {}
-- take: leave it out
SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH model.framework = lightgbm«, model.tree_method = hist» LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.trees check
-- hint: leave it out, or write model.framework = {}
-- take: write (model.framework = \w+)
SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH model.tree_method = hist, «model.framework = lightgbm» LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.optimizer check
-- hint: keep one of them
-- take: keep one of them
SELECT x, y FROM t TO TRAIN LinearRegressor WITH model.framework = torch, «optimizer.clipnorm = 1, »optimizer.clipvalue = 2 LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.running _of_trees
-- hint: leave out train.num_ps and train.strategy: several workers add up their histograms
-- take: leave out train.num_ps and train.strategy
SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_workers = 2«, train.num_ps = 2» LABEL y INTO m;

-- site: sqlflow_edl.analysis.rows.bad_rows check
-- hint: leave it out
-- take: leave it out
SELECT x, w FROM t TO TRAIN KMeans WITH model.n_clusters = 3«, train.on_bad_row = skip» INTO m;

-- site: sqlflow_edl.analysis.rows.bad_rows check
-- hint: leave {} out, and add WHERE {} to the SELECT
-- take: leave train.on_bad_row out, and add (WHERE .+) to the SELECT
-- as: \1
-- as:  
SELECT x, gap FROM t «» TO TRAIN DNNRegressor WITH train.shuffle = false«, train.on_bad_row = skip» LABEL gap INTO m;

-- site: sqlflow_edl.analysis.rows.increments hint_at_increments
-- hint: WITH {} = id trains on the rows that are new since the last training
-- take: (WITH train.incremental_column = id) trains
-- as:  
-- as: \1
SELECT x, id, y FROM t «WHERE id > LAST» TO TRAIN BoostedTreesRegressor «» LABEL y INTO m;

-- site: sqlflow_edl.analysis.rows.increments column
-- hint: leave one of them out
-- take: leave one of them out
SELECT x, id, y FROM t TO TRAIN DNNRegressor WITH train.incremental_column = id«, train.shuffle = false» LABEL y INTO m;

-- site: sqlflow_edl.analysis.rows.row_groups _refuse_divided_groups
-- hint: leave it out, and EVALUATE the model on the rows to test it on
-- take: leave it out, and EVALUATE
SELECT x, page, n FROM t TO TRAIN BoostedTreesRanker WITH train.group_column = page«, validation.test_fraction = 0.2» LABEL n INTO m;

-- site: sqlflow_edl.analysis.rows.row_groups _refuse_divided_groups
-- hint: leave it out, or select the validation rows by a query: VALIDATE ON (SELECT …)
-- take: leave it out, or select
SELECT x, page, n FROM t TO TRAIN BoostedTreesRanker WITH train.group_column = page«, train.shuffle = false» LABEL n INTO m;

-- site: sqlflow_edl.analysis.rows.row_groups _refuse_divided_groups
-- hint: leave it out, or select the validation rows by a query: VALIDATE ON (SELECT …)
-- take: select the validation rows by a query: (VALIDATE ON) \(SELECT …\)
-- as: \1 (SELECT x, page, n FROM t)
SELECT x, page, n FROM t TO TRAIN BoostedTreesRanker WITH train.group_column = page, train.shuffle = false «» LABEL n INTO m;

-- site: sqlflow_edl.analysis.rows.splits check_found
-- hint: it is TRUE (or 1) in the rows to validate on, and FALSE (or 0) in those to train on
-- take: it is TRUE
-- as: id % 5 = 0
SELECT x, «TRUE» AS v, y FROM t TO TRAIN DNNRegressor WITH validation.split = column, validation.column = v LABEL y INTO m;

-- site: sqlflow_edl.analysis.rows.splits _split_as_written
-- hint: leave it out, or write {} = group or {} = time
-- take: leave it out, or
SELECT x, page, y FROM t TO TRAIN DNNRegressor WITH validation.split = random«, validation.column = page» LABEL y INTO m;

-- site: sqlflow_edl.analysis.rows.splits _split_as_written
-- hint: leave it out, or write {} = group or {} = time
-- take: or write (validation.split = group) or
SELECT x, page, y FROM t TO TRAIN DNNRegressor WITH «validation.split = random», validation.column = page LABEL y INTO m;

-- site: sqlflow_edl.analysis.rows.splits _split_by_mark
-- hint: select a comparison: {} {} AS is_test
-- take: a comparison: (w > 0 AS) is_test
-- as: w > 1 AS w
SELECT x, «w», y FROM t TO TRAIN DNNRegressor WITH validation.split = column, validation.column = w LABEL y INTO m;

-- site: sqlflow_edl.analysis.rows.validation check_columns
-- hint: select it AT TIME ZONE 'UTC' in one of them, for UTC the zone in which it is written
-- take: (AT TIME ZONE 'UTC')
SELECT x, moment, y FROM t TO TRAIN DNNRegressor LABEL y VALIDATE ON (SELECT x, moment::TIMESTAMPTZ «» AS moment, y FROM t) INTO m;

-- site: sqlflow_edl.analysis.search.drafts drafts_of
-- hint: name the model that is to be tried with several values: TO TRAIN BoostedTrees …
-- take: TO TRAIN (BoostedTrees) …
-- as: TO TRAIN \1 
SELECT x, y FROM t «»LABEL y WITH model.num_leaves = RANGE(8, 32) INTO m;

-- site: sqlflow_edl.analysis.search.drafts _points
-- hint: leave USING out, or {}
-- take: leave USING out
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO parent_trees;
SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH model.num_leaves = RANGE(8, 32) LABEL y «USING parent_trees» INTO m;

-- site: sqlflow_edl.analysis.search.plan _check_validation
-- hint: write validation.split = time, and the column: validation.column = order_date
-- take: (validation.split = time), and the column: (validation.column) = order_date
-- as: , \1, \2 = x
SELECT x, page, y FROM t LABEL y WITH auto.folds = 3, auto.models = lightgbm, auto.trials = 2, validation.gap = 1«» INTO m;

-- site: edl.sources.row_order.blocks _find_gaps
-- hint: write a shorter validation.gap, or fewer validation.folds
-- take: write a shorter (validation.gap)
-- as: \1 = 0.5
-- run
SELECT x, day, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2, validation.folds = 2, validation.split = time, validation.column = day, «validation.gap = 100000» LABEL y INTO m;

-- site: sqlflow_edl.analysis.search.plan plan
-- hint: leave it out, or write one value for each attribute
-- take: leave it out, or write one value
SELECT x, id, y FROM t TO TRAIN BoostedTreesRegressor WITH model.num_leaves = RANGE(8, 32)«, train.incremental_column = id» LABEL y INTO m;

-- site: sqlflow_edl.analysis.search.space _range
-- hint: write the lower end first
-- take: write the lower end first
-- as: 8, 64
SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH model.num_leaves = RANGE(«64, 8») LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.losses _check_smoothing
-- hint: leave it out; networks have it for cross_entropy, the usual loss of classes
-- take: leave it out; networks
SELECT x, n FROM t TO TRAIN BoostedTreesClassifier WITH train.num_boost_round = 2«, loss.label_smoothing = 0.1» LABEL n INTO m;

-- site: sqlflow_edl.analysis.settings.losses _check_labels
-- hint: leave such rows out, or name another loss
-- take: leave such rows out
-- as: WHERE y >= 0
SELECT x, y FROM t « » TO TRAIN BoostedTreesRegressor WITH loss = poisson, train.num_boost_round = 2 LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.running _of_trees
-- hint: leave that out, or leave out train.num_workers and --workers
-- take: leave out train.num_workers
SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH model.framework = xgboost, model.tree_method = exact«, train.num_workers = 2» LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.running problems
-- hint: leave it out, or set train.num_ps = 2
-- take: leave it out, or set (train.num_ps = 2)
-- as: , \1
SELECT x, y FROM t TO TRAIN DNNRegressor WITH model.framework = torch, train.checkpoint_copies = neighbours«» LABEL y INTO m;

-- site: sqlflow_edl.analysis.models.parts _unlabelled_feature
-- hint: leave it out of the SELECT, or group its values there
-- take: leave it out of the SELECT
SELECT w, x«, u» FROM (SELECT x, w, i::VARCHAR AS u FROM t, range(50) AS r(i)) AS q TO TRAIN KMeans WITH model.n_clusters = 3 COLUMN x, «CATEGORY_HASH(u, 1000000)» INTO m;

-- site: sqlflow_edl.analysis.models.deepfm _field
-- hint: write the category itself, and model.embedding_dim = {} for all
-- take: write the category itself, and (model.embedding_dim = 4) for all
-- as: , \1
-- as: k
SELECT k, y FROM t TO TRAIN DeepFMRegressor WITH epochs = 2« » COLUMN «EMBEDDING(k, 4)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.models.wide_deep _wide_feature
-- hint: write the category itself, or FOR deep
-- take: write the category itself
-- as: k
SELECT x, k, y FROM t TO TRAIN DNNLinearCombinedRegressor COLUMN «EMBEDDING([k], 4)» FOR wide COLUMN x FOR deep LABEL y INTO m;

-- site: sqlflow_edl.analysis.warm_start choice
-- hint: leave USING out: a training takes seconds, and learns from all rows of the query
-- take: leave USING out
-- first: SELECT day, store, sold FROM days TO TRAIN Forecast WITH forecast.time = day, forecast.series = store, forecast.horizon = 3 LABEL sold INTO parent_fc;
SELECT day, store, sold FROM days TO TRAIN Forecast WITH forecast.time = day, forecast.series = store, forecast.horizon = 3 LABEL sold «USING parent_fc» INTO m;

-- site: sqlflow_edl.analysis.warm_start check_parameters
-- hint: leave {} out
-- take: leave (.+) out
-- as:  
-- first: SELECT x, y FROM t TO TRAIN DNNRegressor WITH model.framework = torch, epochs = 1 LABEL y INTO parent;
SELECT x, y FROM t TO TRAIN DNNRegressor WITH model.framework = torch«, model.hidden_units = [7]» LABEL y USING parent INTO m;

-- site: sqlflow_edl.analysis.columns.reused with_parent
-- hint: leave COLUMN FEATURES({}) out, or USING
-- take: leave COLUMN FEATURES\(parent\) out, or
-- first: SELECT x, y FROM t TO TRAIN DNNRegressor WITH model.framework = torch, epochs = 1 LABEL y INTO parent;
SELECT x, y FROM t TO TRAIN DNNRegressor WITH model.framework = torch «COLUMN FEATURES(parent)» LABEL y USING parent INTO m;

-- site: sqlflow_edl.analysis.columns.reused _drop_unneeded_columns
-- hint: write FEATURES({}, [{}]) for these columns alone
-- take: (FEATURES\(.+\]\))
-- first: SELECT x, w, k, y FROM t TO TRAIN DNNRegressor WITH model.framework = torch, epochs = 1 LABEL y INTO parent3;
SELECT x, w, y FROM t TO TRAIN DNNRegressor WITH model.framework = torch COLUMN «FEATURES(parent3)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.reused _check_kind
-- hint: cast it in the SELECT, or name the other columns in FEATURES(m, [x, y])
-- take: cast it in the SELECT
-- as: CAST(x AS DOUBLE) AS x
-- first: SELECT x, w, y FROM t TO TRAIN DNNRegressor WITH model.framework = torch, epochs = 1 LABEL y INTO parent2;
SELECT «x», w, y FROM (SELECT x::VARCHAR AS x, w, y FROM t) AS q TO TRAIN DNNRegressor WITH model.framework = torch COLUMN FEATURES(parent2) LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.reused _draft
-- hint: name the columns themselves in COLUMN, with {} of your own rows
-- take: name the columns themselves in COLUMN, with (\w+) of your own
-- as: \1(k)
-- first: SELECT x, k, y FROM t TO TRAIN DNNRegressor WITH model.framework = torch, epochs = 1 COLUMN x, TARGET_ENCODE(k) LABEL y INTO parent_enc;
SELECT x, k, y FROM t TO TRAIN DNNRegressor WITH model.framework = torch COLUMN «FEATURES(parent_enc)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.labels choose_without_label
-- hint: write a smaller model.n_clusters, or select more rows
-- take: write a smaller
-- as: 3
SELECT x, w FROM t LIMIT 20 TO TRAIN KMeans WITH model.n_clusters = «100» INTO m;

-- site: sqlflow_edl.analysis.checks.query_errors MissingLabelError.__init__
-- hint: name {}: LABEL my_label
-- looks: no
-- take: name the column to predict: (LABEL) my_label
-- as: \1 y
SELECT x, y FROM t TO TRAIN DNNRegressor «» INTO m;

-- site: sqlflow_edl.analysis.labels _predicts_texts
-- hint: a {} predicts texts; if its texts are numbers, select {} AS {}
-- looks: no
-- take: select (TRY_CAST\(.+?\) AS u)$
SELECT x, «u» FROM (SELECT x, y::VARCHAR AS u FROM t) AS q TO TRAIN DNNRegressor LABEL u INTO m;

-- site: sqlflow_edl.analysis.labels _predicts_texts
-- hint: a {} predicts texts; if its texts are numbers, select {} AS {}
-- looks: no
-- take: a (\w+Classifier) predicts
SELECT x, k FROM t TO TRAIN «DNNRegressor» LABEL k INTO m;

-- site: sqlflow_edl.analysis.labels check_type
-- hint: name a column of numbers, or count the rows of each time: COUNT(*) … GROUP BY
-- take: count the rows of each time: (COUNT\(\*\)) … (GROUP BY)
-- as: \1 AS k
-- as: \2 day
SELECT day, «k» FROM t «» TO TRAIN Forecast WITH forecast.time = day, forecast.horizon = 3 LABEL k INTO m;

-- site: sqlflow_edl.analysis.uncertainty
-- hint: leave predict.interval out
-- take: leave predict.interval out
-- first: SELECT x, w FROM t TO TRAIN KMeans WITH model.n_clusters = 2 INTO groups;
SELECT x, w FROM t TO PREDICT «WITH predict.interval = 0.9» USING groups;

-- site: sqlflow_edl.analysis.uncertainty _explain_missing
-- hint: train it again with VALIDATE 0.1, or on 100 rows or more
-- take: train it again with (VALIDATE 0.1)
-- run
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2, validation.fraction = 0 LABEL y INTO unvalidated;
-- as: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y \1 INTO validated
«SELECT x FROM t TO PREDICT WITH predict.interval = 0.9 USING unvalidated»;

-- site: sqlflow_edl.analysis.uncertainty _choose_threshold
-- hint: write a probability, or train it again with VALIDATE 0.1
-- take: or train it again with (VALIDATE 0.1)
-- first: SELECT x, is_new FROM t TO TRAIN BoostedTreesClassifier WITH train.num_boost_round = 2, validation.fraction = 0 LABEL is_new INTO unvalidated2;
-- as: 0.5
SELECT x FROM t TO PREDICT WITH predict.threshold = «f1» USING unvalidated2;

-- site: sqlflow_edl.analysis.measurement _contradictions
-- hint: write a number from 0 to 1
-- take: write (0.\d|a number from 0 to 1)
-- as: 0.5
SELECT x, is_new, w / 4 AS p FROM t TO EVALUATE WITH evaluate.probability = p, evaluate.threshold = «f1» LABEL is_new;

-- site: sqlflow_edl.analysis.user_model check_sequence
-- hint: train a SequenceClassifier or a SequenceRegressor, or a model of your own with a parameter features; others take EMBEDDING(x, 8, mean) of the same ids, which has no order
-- take: others take (EMBEDDING\()x(, 8, mean\))
-- as: \1VOCABULARIZE(tags, delimiter=",")\2
SELECT tags, y FROM t TO TRAIN DNNRegressor COLUMN «SEQUENCE(VOCABULARIZE(tags, delimiter=","), 20)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.attribute_dictionary _example
-- hint: write {} = {}, in seconds
-- take: write (.+), in seconds
SELECT x, y FROM t TO TRAIN DNNRegressor WITH «train.time_limit = '2 min'» LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.attribute_dictionary _example
-- hint: such as {} = {}. {}
-- take: such as (train.epoch = 10)\.
SELECT x, y FROM t TO TRAIN DNNRegressor WITH «train.epoch = 'ten'» LABEL y INTO m;

-- site: sqlflow_edl.session.compiler Compiler.parent
-- hint: write WITH auto.models = {} in place of USING
-- take: write (WITH auto.models = trees)
SELECT x, y FROM t LABEL y INTO m «USING trees»;

-- site: sqlflow_edl.session.advice.columns advise_label
-- hint: name {}, such as LABEL {}; the query has {}
-- take: such as (LABEL \w+);
SELECT x, y FROM t TO TRAIN DNNRegressor «» INTO m;

-- site: sqlflow_edl.session.advice.columns advise_label
-- hint: name {}, such as LABEL {}; the query has {}
-- take: such as( LABEL \w+);
SELECT x, y FROM t TO EVALUATE WITH evaluate.prediction = x«»;

-- site: sqlflow_edl.analysis.settings.attribute_dictionary _range_hint
-- hint: {}; leave it out for the default
-- take: leave it out for the default
-- as:
SELECT x, y FROM t TO TRAIN DNNRegressor WITH model.hidden_units = [8]«, train.epoch = 0» LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.attribute_dictionary _range_hint
-- hint: {}; {} % is {}
-- take: % is (.+)
SELECT x, y FROM t TO TRAIN DNNRegressor WITH validation.fraction = «20» LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.attribute_dictionary _range_hint
-- hint: {}; the default is {}
-- take: the default is (.+)
SELECT x, y FROM t TO TRAIN DNNRegressor WITH train.seed = «-1» LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.losses _check_labels
-- hint: leave USING out, or the loss
-- take: leave USING out
-- first: SELECT x, 1e9 + id AS y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 1 LABEL y INTO with_centre;
SELECT x, 1e9 + id AS y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 1, model.objective = poisson LABEL y «USING with_centre» INTO m;

-- site: sqlflow_edl.analysis.settings.trees _check_monotone
-- hint: leave it out
-- take: leave it out
SELECT x, page FROM t TO TRAIN BoostedTreesClassifier WITH train.num_boost_round = 1«, model.monotone = [+x]» LABEL page INTO m;

-- site: sqlflow_edl.analysis.settings.trees _check_interactions
-- hint: add a list of them
-- take: (add a list) of them
-- as: , [page, id]
SELECT x, page, id, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 1, model.interactions = [[page], [id]«»] COLUMN x, CROSS([page, id], 10) LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.trees check_columns
-- hint: leave it out
-- take: leave it out
SELECT x, k FROM t TO TRAIN xgboost.gblinear WITH train.num_boost_round = 1«, model.monotone = [+x]» LABEL k INTO m;

-- site: sqlflow_edl.analysis.search.label_losses choose_losses
-- hint: leave it out
-- take: leave it out
SELECT x, k FROM t LABEL k WITH auto.models = lightgbm«, auto.losses = poisson» INTO m;

-- site: sqlflow_edl.analysis.search.label_losses choose_losses
-- hint: leave {} out
-- take: leave gamma out
SELECT x, flag FROM t LABEL flag WITH auto.models = lightgbm, auto.metric = rmse, auto.losses = [poisson«, gamma»] INTO m;

-- site: sqlflow_edl.analysis.forecasts read_forecast
-- hint: leave {} out, or cast the time in the SELECT
-- take: leave forecast.holidays out
SELECT id, y FROM t TO TRAIN Forecast WITH forecast.time = id, forecast.horizon = 3«, forecast.holidays = DE» LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.optimizer _check_solution
-- hint: leave {} out
-- take: leave optimizer out
SELECT x, y FROM t TO TRAIN DNNRegressor WITH model.framework = torch«, optimizer = least_squares» LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.optimizer _check_solution
-- hint: leave out {}, or {}
-- take: leave out train.epoch
SELECT x, y FROM t TO TRAIN LinearRegressor WITH model.l2 = 0.1«, train.epoch = 3» LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.optimizer solve_exactly
-- hint: leave it out
-- take: leave it out
SELECT k, y FROM t TO TRAIN LinearRegressor WITH model.framework = torch«, model.l2 = 0.1» COLUMN INDICATOR(HASH(k, 2000)) LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.running problems
-- hint: leave out train.num_workers and --workers, or {}
-- take: leave out train.num_workers
SELECT x, y FROM t TO TRAIN LinearRegressor WITH model.framework = torch, model.l2 = 0.1«, train.num_workers = 2» LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.trees check
-- hint: write {} for {}, or model.reg_alpha
-- take: write (loss\.quantile) for
SELECT x, y FROM t TO TRAIN lightgbm.gbdt WITH train.num_boost_round = 2, objective = quantile, «alpha» = 0.9 LABEL y INTO m;

-- site: sqlflow_edl.analysis.inference.evaluation _with_known_anomalies
-- hint: select a comparison with it: SELECT *, kind = 'fraud' AS known
-- take: (SELECT \*, kind = 'fraud' AS known)
-- first: SELECT x, w FROM t TO TRAIN IsolationForest INTO unusual;
-- as: k = 'red' AS known
SELECT x, w, «k AS known» FROM t TO EVALUATE unusual LABEL known;

-- site: sqlflow_edl.analysis.inference.explanation explanation
-- hint: train a model of {} alone to explain it: LABEL {}
-- take: train a model of \w+ alone to explain it: (LABEL \w+)
-- first: SELECT x, y, w FROM t TO TRAIN DNN WITH model.framework = torch, epochs = 1 LABEL y, w INTO both;
-- as: TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 \1 INTO alone
-- run
SELECT x, y, w FROM t «TO EXPLAIN both»;

-- site: sqlflow_edl.extensions.bigquery_ml.functions _anomalies
-- hint: write ML.DETECT_ANOMALIES(MODEL {}, STRUCT(0.1 AS contamination), …)
-- take: (ML\.DETECT_ANOMALIES\(MODEL \w+, STRUCT\(0\.1 AS contamination\)), …\)
-- first: SELECT x, w FROM t TO TRAIN KMeans WITH model.n_clusters = 2 INTO groups;
-- as: \1, (SELECT x, w FROM t))
SELECT * FROM «ML.DETECT_ANOMALIES(MODEL groups, (SELECT x, w FROM t))»;

-- site: sqlflow_edl.analysis.inference.evaluation _report
-- hint: leave evaluate.report out
-- take: leave evaluate.report out
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
SELECT x, y FROM t TO EVALUATE of_numbers «WITH evaluate.report = confusion_matrix» LABEL y;

-- site: sqlflow_edl.analysis.inference.prediction check_prediction
-- hint: name it behind PREDICT: TO PREDICT my_table USING my_model APPEND
-- take: name it behind PREDICT: TO PREDICT (my_table) USING my_model APPEND
-- first: SELECT x, n FROM t TO TRAIN BoostedTreesClassifier WITH train.num_boost_round = 2 LABEL n INTO of_classes; DROP TABLE IF EXISTS my_table; SELECT x FROM t TO PREDICT my_table USING of_classes;
SELECT x FROM t TO PREDICT «» USING of_classes APPEND;

-- site: sqlflow_edl.analysis.inference.used_model check_use
-- hint: add USING my_model
-- looks: no
-- take: add (USING my_model)
-- first: SELECT x, n FROM t TO TRAIN BoostedTreesClassifier WITH train.num_boost_round = 2 LABEL n INTO my_model;
SELECT x FROM t TO PREDICT «»;

-- site: sqlflow_edl.analysis.inference.prediction _rows_or_report
-- hint: leave the table out; sqlflow run -o FILE writes the rows
-- take: leave the table out
-- first: SELECT x, n FROM t TO TRAIN BoostedTreesClassifier WITH train.num_boost_round = 2 LABEL n INTO of_classes;
SELECT x FROM t TO PREDICT «report_table» WITH predict.report = features USING of_classes;

-- site: sqlflow_edl.analysis.inference.evaluation _label_column
-- hint: select it, or name the column that holds it: LABEL column
-- take: name the column that holds it: LABEL column
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
-- looks: no
-- as: LABEL truth
SELECT x, y AS truth FROM t TO EVALUATE of_numbers «»;

-- site: edl.models.registry.records check_name
-- hint: write {}
-- take: write (.+)
-- run
SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO «"m@2"»;

-- site: sqlflow_edl.analysis.models.transform _feature
-- hint: write it in COLUMN of the models that use the transform
-- take: write it in COLUMN of the models
-- as: BoostedTreesRegressor WITH train.num_boost_round = 2
-- as: LABEL y
SELECT k, y FROM t TO TRAIN «Transform» COLUMN TARGET_ENCODE(k) «» INTO m;

-- site: sqlflow_edl.analysis.models.wide_deep _assemble
-- hint: write COLUMN … FOR {}
-- take: write (COLUMN) … (FOR \w+)
-- as: \1 w \2
SELECT x, w, y FROM t TO TRAIN DNNLinearCombinedRegressor COLUMN CROSS([BUCKETIZE(w, 3), BUCKETIZE(x, 3)], 10) FOR wide «» LABEL y INTO m;

-- site: sqlflow_edl.session.uses ModelUse._leave_out_seen_rows
-- hint: leave {} out
-- take: leave validation.unseen_only out
-- first: SELECT x, reverse(k) AS k, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_reversed;
SELECT x, k, y FROM t TO EVALUATE of_reversed «WITH validation.unseen_only = true»;

-- site: sqlflow_edl.analysis.choice _find_own_model
-- hint: write TO TRAIN {}
-- take: write TO TRAIN (.+)
SELECT x, k FROM t TO TRAIN «tf.estimator.DNNClassifier» LABEL k INTO m;

-- site: sqlflow_edl.analysis.choice 
-- hint: write TO TRAIN DNNClassifier WITH model.hidden_units = [64, 32], or a class of yours, my_module.MyModel
-- take: write TO TRAIN (.+?), or
SELECT x, k FROM t TO TRAIN «tf.keras.layers.Dense» LABEL k INTO m;

-- site: sqlflow_edl.analysis.inference.evaluation _report
-- hint: write evaluate.report = confusion_matrix
-- take: write (evaluate.report = confusion_matrix)
-- first: SELECT x, k FROM t TO TRAIN BoostedTreesClassifier WITH train.num_boost_round = 2 LABEL k INTO of_colours;
SELECT x, k FROM t TO EVALUATE of_colours WITH «evaluate.report = roc_curve»;

-- site: sqlflow_edl.analysis.rows.increments _literal
-- hint: leave {} out once
-- take: leave train.incremental_column out
-- first: DROP MODEL IF EXISTS later_one; CREATE OR REPLACE TABLE later AS SELECT * FROM t; SELECT id, x, y FROM later TO TRAIN DNNRegressor WITH train.epochs = 1, train.incremental_column = id COLUMN x LABEL y INTO later_one; ALTER TABLE later ALTER id TYPE DATE USING DATE '2024-01-01' + id::INT;
SELECT id, x, y FROM later TO TRAIN DNNRegressor WITH train.epochs = 1«, train.incremental_column = id» COLUMN x LABEL y USING later_one INTO later_one;

-- site: sqlflow_edl.analysis.alternatives 
-- hint: write it in Keras or PyTorch, and name it with its module: my_module.MyModel
-- take: (my_module.MyModel)
-- then: my_module
SELECT x, y FROM t TO TRAIN «ResNet» LABEL y INTO m;

-- site: sqlflow_edl.analysis.inference.explanation explanation
-- hint: write SELECT * FROM ML.PRINCIPAL_COMPONENTS(MODEL {})
-- take: write (SELECT \* FROM ML.PRINCIPAL_COMPONENTS\(MODEL parts\))
-- first: SELECT x, w FROM t TO TRAIN PCA INTO parts;
«SELECT x, w FROM t TO EXPLAIN parts»;

-- site: sqlflow_edl.analysis.settings.optimizer check
-- hint: leave optimizer out
-- take: leave optimizer out
SELECT x, y FROM t TO TRAIN DNNRegressor WITH «optimizer = principal_components, »epochs = 1 LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.optimizer _refuse_steps
-- hint: leave {} out
-- take: leave train.epoch out
SELECT x, w FROM t TO TRAIN PCA «WITH train.epoch = 2» INTO m;

-- site: sqlflow_edl.analysis.settings.running problems
-- hint: leave it out
-- take: leave it out
SELECT x, w FROM t TO TRAIN PCA «WITH train.num_workers = 2» INTO m;

-- site: sqlflow_edl.extensions.bigquery_ml.options 
-- hint: leave it out: the components are exact, as with FULL
-- take: leave it out
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'PCA'«, pca_solver = 'SPARSE'») AS SELECT x, w FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.reductions embed_rows
-- hint: write ML.GENERATE_EMBEDDING(MODEL {}, (SELECT …))
-- take: write (ML.GENERATE_EMBEDDING\(MODEL parts, \()SELECT …
-- first: SELECT x, w FROM t TO TRAIN PCA INTO parts;
-- as: \1SELECT x, w FROM t))
SELECT * FROM «ML.GENERATE_EMBEDDING(MODEL parts)»;

-- site: sqlflow_edl.extensions.decomposition.matrix_factorization _assemble
-- hint: leave it out, or write model.feedback_type = "implicit"
-- take: leave it out
SELECT k, n, x FROM t TO TRAIN MatrixFactorization «WITH model.wals_alpha = 3» COLUMN VOCABULARIZE(k), VOCABULARIZE(n) LABEL x INTO m;

-- site: sqlflow_edl.extensions.decomposition.reductions _assemble
-- hint: leave one of them out
-- take: leave one of them out
SELECT x, w FROM t TO TRAIN PCA WITH num_components = 1«, explained_variance_ratio = 0.9» INTO m;

-- site: sqlflow_edl.extensions.decomposition.reductions _assemble
-- hint: write num_components = {}
-- take: write (num_components = 2)
SELECT x, w FROM t TO TRAIN PCA WITH «num_components = 5» INTO m;

-- site: sqlflow_edl.analysis.alternatives 
-- hint: train a MatrixFactorization with COLUMN VOCABULARIZE(user), VOCABULARIZE(item) LABEL rating
-- take: train a (MatrixFactorization) with
SELECT k, n, x FROM t TO TRAIN «SVDpp» COLUMN VOCABULARIZE(k), VOCABULARIZE(n) LABEL x INTO m;

-- site: sqlflow_edl.extensions.decomposition.matrix_factorization _assemble
-- hint: name them: COLUMN VOCABULARIZE(user), VOCABULARIZE(item)
-- take: name them: (COLUMN VOCABULARIZE\(user\), VOCABULARIZE\(item\))
SELECT k AS user, n AS item, x FROM t TO TRAIN MatrixFactorization « »LABEL x INTO m;

-- site: sqlflow_edl.extensions.sequences.models _assemble
-- hint: make one with SEQ_CATEGORY_ID(x, 1000), or VOCABULARIZE(x, delimiter=" ")
-- take: or (VOCABULARIZE)\(x(, delimiter=" "\))
-- as: \1(tags\2
SELECT tags, y FROM t TO TRAIN SequenceRegressor WITH epochs = 1 COLUMN «VOCABULARIZE(tags)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.choice choose
-- hint: write {}, which needs no image
-- take: write (DNNRegressor), which
SELECT x, y FROM t TO TRAIN «some/image:v1/DNNRegressor» WITH epochs = 1 LABEL y INTO m;

-- site: sqlflow_edl.syntax.model_functions 
-- hint: write SELECT CORR(x, y) FROM my_table, or ML.DESCRIBE_DATA(TABLE my_table) for each column
-- take: or ML.DESCRIBE_DATA\(TABLE my_table\)
-- as: ML.DESCRIBE_DATA(TABLE t)
SELECT * FROM «ML.CORRELATION(TABLE t)»;

-- site: sqlflow_edl.syntax.model_functions 
-- hint: write SELECT * FROM ML.VALIDATE_DATA_DRIFT(TABLE my_table, TABLE other_table)
-- take: write SELECT \* FROM (ML.VALIDATE_DATA_DRIFT\(TABLE my_table, TABLE other_table\))
-- as: ML.VALIDATE_DATA_DRIFT(TABLE t, TABLE t)
SELECT * FROM «ML.TFDV_VALIDATE(TABLE t)»;

-- site: sqlflow_edl.syntax.predict_calls _limits
-- hint: write [('my_column', 0.2)] AS {}
-- take: write (\[\('my_column', 0.2\)\] AS numerical_thresholds)
-- as: [('x', 0.2)] AS numerical_thresholds
SELECT * FROM ML.VALIDATE_DATA_DRIFT(TABLE t, TABLE t, STRUCT(«[('x')] AS numerical_thresholds»));

-- site: sqlflow_edl.extensions.bigquery_ml.create_model read_create_model
-- hint: leave them out: the query has the columns
-- take: leave them out: the query
CREATE OR REPLACE MODEL bq «INPUT(x FLOAT64) »OPTIONS(model_type = 'BOOSTED_TREE_REGRESSOR', max_iterations = 1, input_label_cols = ['y']) AS SELECT x, y FROM t;

-- site: sqlflow_edl.syntax.bigquery 
-- hint: leave it out: a category has a weight for each value
-- take: leave it out: a category
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['y']«, category_encoding_method = 'DUMMY_ENCODING'») AS SELECT x, k, y FROM t;

-- site: sqlflow_edl.syntax.bigquery 
-- hint: leave it out: each round adds one tree
-- take: leave it out: each round
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'BOOSTED_TREE_REGRESSOR', max_iterations = 2, input_label_cols = ['y']«, num_parallel_tree = 4») AS SELECT x, y FROM t;

-- site: sqlflow_edl.syntax.bigquery 
-- hint: leave it out: a training by steps has no errors of its weights
-- take: leave it out: a training by steps
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['y']«, calculate_p_values = TRUE») AS SELECT x, y FROM t;

-- site: sqlflow_edl.syntax.error_messages _expression_hint
-- hint: COLUMN has no conditions: write BUCKET(x, [3]), or compute it in the SELECT
-- take: write BUCKET\((x, \[3\]\))
-- as: BUCKET(\1
SELECT x, y FROM t TO TRAIN DNNRegressor COLUMN «x > 3» LABEL y INTO m;

-- site: sqlflow_edl.syntax.ast_builder _Builder._given_twice
-- hint: line {} has {} already; a list takes commas
-- take: line 1 has LABEL already; a list takes commas
-- as: , x
SELECT x, w, y FROM t TO TRAIN DNN LABEL y «LABEL x» INTO m;

-- site: sqlflow_edl.syntax.predict_calls 
-- hint: write PREDICT(my_model, (SELECT …)) or PREDICT(my_model, my_table)
-- take: write PREDICT\(my_model, (\(SELECT …\))\)
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
-- as: , (SELECT x FROM t)
SELECT * FROM PREDICT(of_numbers«»);

-- site: sqlflow_edl.syntax.error_messages _unclosed_bracket
-- hint: put {} before {}
-- take: put (\)) before
SELECT x, y FROM t TO TRAIN DNNRegressor COLUMN BUCKETIZE(x, 3«» LABEL y INTO m;

-- site: sqlflow_edl.syntax.error_messages misplaced
-- hint: put it behind TO TRAIN, TO PREDICT or another verb; {} alone begins nothing
-- take: put it behind TO TRAIN
SELECT x, y FROM t «WITH epochs = 2 »TO TRAIN DNNRegressor LABEL y INTO m;

-- site: sqlflow_edl.syntax.error_messages query_of_create
-- hint: begin with the SELECT; {}
-- take: begin with the SELECT
«CREATE TABLE predictions AS »SELECT x, y FROM t TO TRAIN DNNRegressor LABEL y INTO m;

-- site: sqlflow_edl.syntax.error_messages _no_model
-- hint: put one before {}, such as DNNClassifier; or leave TO TRAIN out, and the best model is searched: SELECT … LABEL y INTO m
-- take: put one before (\w+), such as (DNNClassifier)
-- as: TO TRAIN \2 
SELECT x, n FROM t «TO TRAIN »LABEL n INTO m;

-- site: sqlflow_edl.syntax.error_messages no_into
-- hint: add INTO and a name for the model, or put TO TRAIN and a model before {}
-- take: add INTO and a name for the model
-- as: INTO m
SELECT x, n FROM t LABEL n «»;

-- site: sqlflow_edl.syntax.error_messages _special_hint
-- hint: write straight quotes, ' or "
-- take: write straight quotes
-- as: 'red'
SELECT x, k, y FROM t TO TRAIN DNNRegressor COLUMN VOCABULARIZE(k, delimiter=«’,’») LABEL y INTO m;

-- site: sqlflow_edl.syntax.lookalikes 
-- hint: write SHOW MODELS
-- take: write (SHOW MODELS)
«LIST MODELS»;

-- site: sqlflow_edl.syntax.lookalikes 
-- hint: write DROP MODEL
-- take: write (DROP MODEL)
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO old_model;
«DELETE MODEL» old_model;

-- site: sqlflow_edl.syntax.bigquery created_model
-- hint: write CREATE OR REPLACE MODEL
-- take: write (CREATE OR REPLACE MODEL)
«CREATE MODEL IF NOT EXISTS» bq OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['y']) AS SELECT x, y FROM t;

-- site: sqlflow_edl.syntax.bigquery _query
-- hint: write AS SELECT … behind it
-- take: write (AS SELECT)
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['y']) «SELECT» x, y FROM t;

-- site: sqlflow_edl.syntax.bigquery _labels
-- hint: write input_label_cols = ['my_column']
-- take: write (input_label_cols = \['my_column'\])
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'LINEAR_REG', «input_label_cols = 3») AS SELECT x, y AS my_column FROM t;

-- site: sqlflow_edl.syntax.bigquery_transform column_text
-- hint: write TRANSFORM(*)
-- take: write (TRANSFORM\(\*\))
CREATE OR REPLACE MODEL bq «TRANSFORM()» OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['y']) AS SELECT x, y FROM t;

-- site: sqlflow_edl.syntax.error_messages _expression_hint
-- hint: a value in a JSON text is JSON(payload, '$.user.age')
-- take: (JSON\(payload, '.+'\))
SELECT payload, y FROM t TO TRAIN DNNRegressor COLUMN «payload->'$.user.age'» LABEL y INTO m;

-- site: sqlflow_edl.syntax.error_messages _expression_hint
-- hint: COLUMN has no conditions: write BUCKET(x, [3]), or compute it in the SELECT
-- take: write (BUCKET\(x, \[3\]\))
SELECT x, y FROM t TO TRAIN DNNRegressor COLUMN «x > 3» LABEL y INTO m;

-- site: sqlflow_edl.syntax.error_messages _special_hint
-- hint: put a comma before {}
-- take: put a comma before
SELECT x, w, y FROM t TO TRAIN DNNRegressor COLUMN x« w» LABEL y INTO m;

-- site: sqlflow_edl.syntax.lookalikes 
-- hint: write DROP MODEL
-- take: write (DROP MODEL)
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO old_numbers;
«DELETE MODEL» old_numbers;

-- site: sqlflow_edl.syntax.predict_calls _check_function
-- hint: write {}(MODEL my_model)
-- take: write (ML\.WEIGHTS\(MODEL) my_model\)
-- first: SELECT x, y FROM t TO TRAIN LinearRegressor WITH model.framework = torch, epochs = 1 LABEL y INTO straight;
SELECT * FROM «ML.ADVANCED_WEIGHTS(MODEL» straight);

-- site: sqlflow_edl.syntax.predict_calls _attribute
-- hint: such as threshold = 0.3 or interval = 0.9
-- take: such as (threshold = 0.3)
-- first: SELECT x, is_new FROM t TO TRAIN BoostedTreesClassifier WITH train.num_boost_round = 2 LABEL is_new INTO of_flags;
SELECT * FROM PREDICT(of_flags, (SELECT x FROM t), «0.3»);

-- site: sqlflow_edl.syntax.bigquery_transform _part
-- hint: {} are possible, such as EXTRACT(MONTH FROM x)
-- take: such as (EXTRACT\(MONTH FROM) x\)
CREATE OR REPLACE MODEL bq TRANSFORM(«EXTRACT(EPOCH FROM» day) AS d, y) OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['y']) AS SELECT day, y FROM t;

-- site: sqlflow_edl.syntax.bigquery 
-- hint: leave it out: distances are Euclidean
-- take: leave it out
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'KMEANS', num_clusters = 3«, distance_type = 'COSINE'») AS SELECT x, w FROM t;

-- site: sqlflow_edl.syntax.bigquery _objectives
-- hint: write hparam_tuning_objectives = ['roc_auc']
-- take: write (hparam_tuning_objectives = \['roc_auc'\])
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'BOOSTED_TREE_CLASSIFIER', input_label_cols = ['is_new'], num_trials = 2, max_iterations = 2, max_tree_depth = HPARAM_RANGE(2, 3), «hparam_tuning_objectives = 3») AS SELECT x, is_new FROM t;

-- site: sqlflow_edl.syntax.bigquery _weights_of_classes
-- hint: write class_weights = [STRUCT('a', 0.2), STRUCT('b', 0.8)]
-- take: write (class_weights = \[STRUCT\('a', 0.2\), STRUCT\('b', 0.8\)\])
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'LOGISTIC_REG', input_label_cols = ['c'], «class_weights = 3») AS SELECT x, CASE WHEN is_new THEN 'a' ELSE 'b' END AS c FROM t;

-- site: sqlflow_edl.syntax.bigquery 
-- hint: trees are boosted here: boosted_tree_regressor
-- take: here: (boosted_tree_regressor)
CREATE OR REPLACE MODEL bq OPTIONS(model_type = '«RANDOM_FOREST_REGRESSOR»', input_label_cols = ['y']) AS SELECT x, y FROM t;

-- site: sqlflow_edl.syntax.bigquery 
-- hint: trees are boosted here: boosted_tree_classifier
-- take: here: (boosted_tree_classifier)
CREATE OR REPLACE MODEL bq OPTIONS(model_type = '«RANDOM_FOREST_CLASSIFIER»', input_label_cols = ['is_new']) AS SELECT x, is_new FROM t;

-- site: sqlflow_edl.syntax.predict_calls _attribute
-- hint: such as threshold = 0.3 or interval = 0.9
-- take: such as (threshold = 0.3)
-- first: SELECT x, is_new FROM t TO TRAIN BoostedTreesClassifier WITH train.num_boost_round = 2 LABEL is_new INTO of_flags;
SELECT * FROM ML.PREDICT(MODEL of_flags, (SELECT x FROM t), «STRUCT(0.3)»);

-- site: sqlflow_edl.syntax.bigquery_transform _part
-- hint: {} are possible, such as EXTRACT(MONTH FROM x)
-- take: MONTH, (DAY), DAYOFWEEK
CREATE OR REPLACE MODEL bq TRANSFORM(EXTRACT(«EPOCH» FROM day) AS d, y) OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['y']) AS SELECT day, y FROM t;

-- site: sqlflow_edl.syntax.ast_builder _Builder._too_many
-- hint: write INTO {}
-- take: write INTO (\w+)
SELECT x, y FROM t TO TRAIN DNNRegressor LABEL y INTO «m, other»;

-- site: sqlflow_edl.syntax.error_messages _unclosed_bracket
-- hint: put {} before {}
-- take: put ([A-Z(),]+) before
SELECT x, y FROM t TO TRAIN DNNRegressor COLUMN BUCKETIZE(x, 3«» LABEL y INTO m;

-- site: sqlflow_edl.syntax.lookalikes 
-- hint: write SHOW MODELS, or DESCRIBE MODEL and a name
-- take: write (SHOW MODELS)
«SHOW MODEL»;

-- site: sqlflow_edl.syntax.lookalikes 
-- hint: write SET MODEL m ACTIVE 2 to use another version, or train a new one INTO the same name
-- take: write (SET MODEL )m ACTIVE 2
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
«ALTER MODEL »of_numbers ACTIVE 1;

-- site: sqlflow_edl.syntax.error_messages 
-- hint: only PREDICT takes APPEND; other rows are added by INSERT INTO my_table SELECT …
-- take: only PREDICT takes APPEND
SELECT x, y FROM t TO TRAIN DNNRegressor LABEL y INTO m« APPEND»;

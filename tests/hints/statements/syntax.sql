-- site: sqlflow_edl.extensions.bigquery_ml.options 
-- hint: leave it out: a category has a weight for each value
-- take: leave it out: a category
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['y']«, category_encoding_method = 'HASHES'») AS SELECT x, k, y FROM t;

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

-- site: sqlflow_edl.syntax.error_messages misplaced_clause_error
-- hint: put it behind TO TRAIN, TO PREDICT or another verb; {} alone begins nothing
-- take: put it behind TO TRAIN
SELECT x, y FROM t «WITH epochs = 2»;

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
-- hint: end the statement with INTO my_model
-- take: end the statement with (INTO my_model)
SELECT x, n FROM t LABEL n «»;

-- site: sqlflow_edl.syntax.error_messages _quoting_hint
-- hint: write straight quotes, ' or "
-- take: write straight quotes
-- as: 'red'
-- then: unexpected x
SELECT x, k, y FROM t TO TRAIN DNNRegressor COLUMN VOCABULARIZE(k, delimiter=«’,’») LABEL y INTO m x;

-- site: sqlflow_edl.syntax.lookalikes 
-- hint: write EXPORT MODEL m OPTIONS(URI = 'm.onnx')
-- take: write EXPORT MODEL m (OPTIONS\(URI = 'm.onnx'\))
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
EXPORT MODEL of_numbers «»;

-- site: sqlflow_edl.extensions.bigquery_ml.export_model read_export_model
-- hint: keep one of them
-- take: keep one of them
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
EXPORT MODEL of_numbers OPTIONS(uri = 'a.onnx'«, uri = 'b.onnx'»);

-- site: sqlflow_edl.extensions.bigquery_ml.export_model 
-- hint: write OPTIONS(URI = 'my_model.onnx')
-- take: write (OPTIONS\(URI = 'my_model.onnx'\))
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
EXPORT MODEL of_numbers «OPTIONS(URI = 3)»;

-- site: sqlflow_edl.extensions.bigquery_ml.export_model _path_of
-- hint: write OPTIONS(URI = '{}')
-- take: write OPTIONS\(URI = ('.+')\)
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
EXPORT MODEL of_numbers OPTIONS(URI = «'gs://bucket/of_bucket.onnx'»);

-- site: sqlflow_edl.syntax.lookalikes 
-- hint: write SHOW MODELS
-- take: write (SHOW MODELS)
«LIST MODELS»;

-- site: sqlflow_edl.syntax.lookalikes 
-- hint: write DROP MODEL
-- take: write (DROP MODEL)
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO old_model;
«DELETE MODEL» old_model;

-- site: sqlflow_edl.extensions.bigquery_ml.create_model _query
-- hint: write AS SELECT … behind it
-- take: write (AS SELECT)
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['y']) «SELECT» x, y FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.create_model _labels
-- hint: write input_label_cols = ['my_column']
-- take: write (input_label_cols = \['my_column'\])
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'LINEAR_REG', «input_label_cols = 3») AS SELECT x, y AS my_column FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.transform read_transform
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

-- site: sqlflow_edl.syntax.error_messages _comma_hint
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
-- take: write (ML\.FEATURE_IMPORTANCE\(MODEL) my_model\)
-- as: \1 of_numbers)
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
SELECT * FROM «ML.FEATURE_IMPORTANCE(MODEL of_numbers, (SELECT x FROM t))»;

-- site: sqlflow_edl.syntax.predict_calls _attribute
-- hint: such as threshold = 0.3 or interval = 0.9
-- take: such as (threshold = 0.3)
-- first: SELECT x, is_new FROM t TO TRAIN BoostedTreesClassifier WITH train.num_boost_round = 2 LABEL is_new INTO of_flags;
SELECT * FROM PREDICT(of_flags, (SELECT x FROM t), «0.3»);

-- site: sqlflow_edl.extensions.bigquery_ml.transform _part
-- hint: {} are possible, such as EXTRACT(MONTH FROM x)
-- take: such as (EXTRACT\(MONTH FROM) x\)
CREATE OR REPLACE MODEL bq TRANSFORM(«EXTRACT(EPOCH FROM» day) AS d, y) OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['y']) AS SELECT day, y FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.options _distance
-- hint: write EUCLIDEAN or COSINE
-- take: or (COSINE)
-- as: '\1'
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'KMEANS', num_clusters = 3, distance_type = «'MANHATTAN'») AS SELECT x, w FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.options _objective
-- hint: write hparam_tuning_objectives = ['roc_auc']
-- take: write (hparam_tuning_objectives = \['roc_auc'\])
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'BOOSTED_TREE_CLASSIFIER', input_label_cols = ['is_new'], num_trials = 2, max_iterations = 2, max_tree_depth = HPARAM_RANGE(2, 3), «hparam_tuning_objectives = 3») AS SELECT x, is_new FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.options _weights_of_classes
-- hint: write class_weights = [STRUCT('a', 0.2), STRUCT('b', 0.8)]
-- take: write (class_weights = \[STRUCT\('a', 0.2\), STRUCT\('b', 0.8\)\])
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'LOGISTIC_REG', input_label_cols = ['c'], «class_weights = 3») AS SELECT x, CASE WHEN is_new THEN 'a' ELSE 'b' END AS c FROM t;

-- site: sqlflow_edl.syntax.predict_calls _attribute
-- hint: such as threshold = 0.3 or interval = 0.9
-- take: such as (threshold = 0.3)
-- first: SELECT x, is_new FROM t TO TRAIN BoostedTreesClassifier WITH train.num_boost_round = 2 LABEL is_new INTO of_flags;
SELECT * FROM ML.PREDICT(MODEL of_flags, (SELECT x FROM t), «STRUCT(0.3)»);

-- site: sqlflow_edl.extensions.bigquery_ml.transform _part
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
-- hint: write ALTER MODEL m RENAME TO n, or SET MODEL m ACTIVE 2 to use another version
-- take: or (SET MODEL )m ACTIVE 2
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
«ALTER MODEL »of_numbers ACTIVE 1;

-- site: sqlflow_edl.syntax.error_messages 
-- hint: only PREDICT takes APPEND; other rows are added by INSERT INTO my_table SELECT …
-- take: only PREDICT takes APPEND
SELECT x, y FROM t TO TRAIN DNNRegressor LABEL y INTO m« APPEND»;

-- site: sqlflow_edl.extensions.bigquery_ml.options 
-- hint: leave it out: a model has an intercept
-- take: leave it out: a model has an intercept
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['y']«, fit_intercept = FALSE») AS SELECT x, y FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.options _initial_centres
-- hint: leave it out: the start is k-means++
-- take: leave it out: the start
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'KMEANS', num_clusters = 3«, kmeans_init_method = 'FIRST'») AS SELECT x, w FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.options _initial_column
-- hint: leave it out, or write kmeans_init_method = 'CUSTOM'
-- take: leave it out, or
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'KMEANS', num_clusters = 3«, kmeans_init_col = 'w'») AS SELECT x, w FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.create_model 
-- hint: write CREATE MODEL … TRANSFORM(…) OPTIONS(…) AS SELECT …
-- take: write CREATE MODEL … (TRANSFORM)\(…\) (OPTIONS)\(…\) AS SELECT …
-- as: TRANSFORM(x, y) OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['y'])
CREATE OR REPLACE MODEL bq «TRANSFORM(x, y)» AS SELECT x, y FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.create_model _check_transform
-- hint: compute columns in the SELECT
-- take: compute columns in the SELECT
-- as:  
-- as: x / 2 AS half
CREATE OR REPLACE MODEL bq «TRANSFORM(x / 2 AS half)» OPTIONS(model_type = 'AUTOML_REGRESSOR', input_label_cols = ['y']) AS SELECT «x», y FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.create_model _check_transform
-- hint: compute columns in the SELECT
-- take: compute columns in the SELECT
-- as:  
-- as: x / 2 AS half
CREATE OR REPLACE MODEL bq «TRANSFORM(x / 2 AS half)» OPTIONS(model_type = 'BOOSTED_TREE_REGRESSOR', input_label_cols = ['y'], max_tree_depth = HPARAM_RANGE(2, 3), num_trials = 2) AS SELECT «x», y FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.create_model parse_clause
-- hint: OPTIONS have the label, and the name of the model stands before them
-- take: OPTIONS have the label
-- as: , input_label_cols = ['y']
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'LINEAR_REG'« LABEL y») AS SELECT x, y FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.create_model find_parenthesis
-- hint: write )
-- take: write (\))
-- as: \1 
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['y']«»AS SELECT x, y FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.options _split
-- hint: AUTO_SPLIT, RANDOM, SEQ, CUSTOM and NO_SPLIT are possible; TRAIN has VALIDATE ON (query)
-- take: AUTO_SPLIT, (RANDOM), SEQ
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['y'], data_split_method = '«HALVES»') AS SELECT x, y FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.options _split
-- hint: AUTO_SPLIT, RANDOM, SEQ, CUSTOM and NO_SPLIT are possible; TRAIN has VALIDATE ON (query)
-- take: and (NO_SPLIT) are
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['y'], data_split_method = '«HALVES»') AS SELECT x, y FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.options OptionReader._map
-- hint: sqlflow help bigquery-ml lists the options; TRAIN has attributes of its own
-- take: sqlflow help bigquery-ml lists
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['y']«, zzqx = 1») AS SELECT x, y FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.transform 
-- hint: compute it in the SELECT; sqlflow help bigquery-ml lists what TRANSFORM takes
-- take: compute it in the SELECT; sqlflow
-- as: x
-- as: upper(k) AS k
CREATE OR REPLACE MODEL bq TRANSFORM(k, «UPPER(k)», y) OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['y']) AS SELECT x, «k», y FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.transform _calls
-- hint: write OVER ()
-- take: write (OVER \(\))
CREATE OR REPLACE MODEL bq TRANSFORM(ML.STANDARD_SCALER(x) «OVER (PARTITION BY k)» AS s, y) OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['y']) AS SELECT x, k, y FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.transform _encoder
-- hint: write {}
-- take: write (ML\.STANDARD_SCALER\(x\) OVER \(\))
CREATE OR REPLACE MODEL bq TRANSFORM(«ML.STANDARD_SCALER(x, 2) OVER ()» AS s, y) OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['y']) AS SELECT x, y FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.transform _encoder
-- hint: write {}
-- take: write (ML\.FEATURE_CROSS\(STRUCT\(a, b\)\))
CREATE OR REPLACE MODEL bq TRANSFORM(«ML.FEATURE_CROSS(STRUCT(a, b, c))» AS s, y) OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['y']) AS SELECT k AS a, n AS b, flag AS c, y FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.transform _encoder
-- hint: write {}
-- take: write (ML\.IMPUTER\(x, 'median'\) OVER \(\))
CREATE OR REPLACE MODEL bq TRANSFORM(«ML.IMPUTER(x, 'worst') OVER ()» AS s, y) OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['y']) AS SELECT x, y FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.transform _encoder
-- hint: write {}
-- take: write (ML\.QUANTILE_BUCKETIZE\(x, 5\) OVER \(\))
CREATE OR REPLACE MODEL bq TRANSFORM(«ML.QUANTILE_BUCKETIZE(x) OVER ()» AS s, y) OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['y']) AS SELECT x, y FROM t;

-- site: sqlflow_edl.syntax.error_messages _no_value
-- hint: put a value before {}
-- take: put a value before
-- as: 3
SELECT x, y FROM t TO TRAIN DNNRegressor WITH epochs = «» LABEL y INTO m;

-- site: sqlflow_edl.syntax.error_messages _quoting_hint
-- hint: a name is expected, not a text: write it without quotes, or as {}
-- take: write it without quotes
-- as: DNNRegressor
SELECT x, y FROM t TO TRAIN «'DNNRegressor'» LABEL y INTO m;

-- site: sqlflow_edl.syntax.error_messages _unclosed_bracket
-- hint: put {} where it ends
-- take: put (\)) where it ends
SELECT x, y FROM t TO TRAIN DNNRegressor LABEL y INTO m COLUMN BUCKETIZE(x, 3«»;

-- site: sqlflow_edl.syntax.error_messages in_parentheses
-- hint: close the parentheses before TO {}, or leave them out
-- take: close the parentheses
-- as:  
-- as:  
«(»SELECT x, y FROM t TO TRAIN DNNRegressor LABEL y INTO m«)»;

-- site: sqlflow_edl.syntax.error_messages not_a_query
-- hint: put a SELECT before TO {}, in the place of {}
-- take: put a SELECT before TO TRAIN, in the place of DELETE
-- as: SELECT x, y FROM t
«DELETE FROM t» TO TRAIN DNNRegressor LABEL y INTO m;

-- site: sqlflow_edl.syntax.error_messages show_train_in_query
-- hint: put a semicolon before SHOW TRAIN
-- take: put a (semicolon) before SHOW TRAIN
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
-- as: ;
SELECT x FROM t «» SHOW TRAIN of_numbers;

-- site: sqlflow_edl.syntax.lookalikes 
-- hint: write DROP MODEL and a name
-- take: write (DROP MODEL) and a name
-- as: \1 of_numbers
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
«DROP MODELS»;

-- site: sqlflow_edl.syntax.predict_calls _check_function
-- hint: write {}(MODEL my_model)
-- take: write (ML\.FEATURE_IMPORTANCE\(MODEL) my_model\)
-- as: \1 of_numbers)
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
SELECT * FROM «ML.FEATURE_IMPORTANCE(MODEL of_numbers, (SELECT x FROM t))»;

-- site: sqlflow_edl.syntax.error_messages 
-- hint: the partition is a column of the query: SELECT *, '20261126' AS ds FROM … APPEND
-- take: (SELECT \*, '20261126' AS ds FROM) … APPEND
-- first: DROP TABLE IF EXISTS parts; SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers; SELECT x, '20261125' AS ds FROM t TO PREDICT parts USING of_numbers;
-- as: \1 (SELECT x FROM t) AS q
-- as: APPEND
«SELECT x FROM t» TO PREDICT parts USING of_numbers «APPEND PARTITION (ds = '20261126')»;

-- site: sqlflow_edl.syntax.error_messages _special_hint
-- hint: a version or a tag, as in name@2, stands behind USING, EVALUATE, SHOW TRAIN, SHOW CURVE, DESCRIBE MODEL and DROP MODEL; SET MODEL takes ACTIVE 2
-- take: a version or a tag
-- as: m
SELECT x, y FROM t TO TRAIN DNNRegressor LABEL y INTO «m@2»;

-- site: sqlflow_edl.syntax.ast_builder _Builder.versioned
-- hint: write {}@1, or leave it out: {} is the current version
-- take: write (\w+@1), or
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
DESCRIBE MODEL «of_numbers@1.5»;

-- site: sqlflow_edl.extensions.bigquery_ml.create_model 
-- hint: write SELECT … TO EXPLAIN my_model
-- take: write SELECT … (TO EXPLAIN) my_model
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
-- as: SELECT x, y FROM t \1 of_numbers
«CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'CONTRIBUTION_ANALYSIS', input_label_cols = ['y']) AS SELECT x, y FROM t»;

-- site: sqlflow_edl.syntax.predict_calls _check_function
-- hint: write STRUCT(0.3 AS threshold)
-- take: write (STRUCT\(0.3 AS threshold\))
-- first: SELECT x, is_new FROM t TO TRAIN BoostedTreesClassifier WITH train.num_boost_round = 2 LABEL is_new INTO of_flags;
SELECT * FROM ML.PREDICT(MODEL of_flags, (SELECT x FROM t), «»);

-- site: sqlflow_edl.syntax.error_messages _quoting_hint
-- hint: write it without quotes
-- take: write it without quotes
-- as: program.py
-- then: program.py
SELECT x FROM t TO RUN «'program.py'» INTO r;

-- site: sqlflow_edl.syntax.lookalikes _hint
-- hint: {}? {}
-- take: did you mean FROM, WHERE\? (.*)
«SELECT x FORM t WEHRE x > 1»;

-- site: sqlflow_edl.syntax.lookalikes _hint
-- hint: {}: {}
-- take: put INTO behind LABEL: (.*)
«SELECT x, n FROM t INTO m LABEL n»;

-- site: sqlflow_edl.syntax.error_messages NoLabelError.suggest
-- hint: put the column that is to be predicted before INTO: one of {}
-- take: put the column that is to be predicted before (INTO)
-- as: y \1
SELECT x, y FROM t LABEL «INTO» m;

-- site: sqlflow_edl.syntax.error_messages _expression_hint
-- hint: write {}, or quote a name that is not one word: {}
-- take: quote a name that is not one word: (.+)
SELECT x, y FROM t LABEL y INTO «my-model»;

-- site: sqlflow_edl.syntax.error_messages _expression_hint
-- hint: write {}, or quote a name that is not one word: {}
-- take: write (my_model), or
SELECT x, y FROM t LABEL y INTO «my-model»;

-- site: sqlflow_edl.syntax.error_messages _comma_hint
-- hint: put a comma before {}
-- take: a name of two words has quotes: (.+)
SELECT x AS "how much", y FROM t TO TRAIN DNNRegressor COLUMN «how much» LABEL y INTO m;

-- site: sqlflow_edl.syntax.error_messages _closing_hint
-- hint: close it, such as {}, or remove the {}
-- take: close it, such as (.+?), or
SELECT x, y FROM t WHERE k = «'red» TO TRAIN DNNRegressor LABEL y INTO m;

-- site: sqlflow_edl.syntax.lookalikes _without_options
-- hint: write CREATE MODEL {} {} AS SELECT …, or SELECT … LABEL my_label INTO {}
-- take: write CREATE MODEL bq (OPTIONS\(.*)'my_label'\]\)
-- as: \1'is_new'])
-- looks: no
CREATE OR REPLACE MODEL bq «» AS SELECT x, is_new FROM t;

-- site: sqlflow_edl.syntax.lookalikes _hint
-- hint: {}: {}
-- take: write a list in brackets: (.*)
«SELECT x, y FROM t TO TRAIN DNNRegressor WITH model.hidden_units = 10, 20 LABEL y INTO m»;

-- site: sqlflow_edl.syntax.lookalikes _hint
-- hint: {}: {}
-- take: the query comes first: (.*)
«TRAIN DNNRegressor ON t COLUMN x LABEL y INTO m»;

-- site: sqlflow_edl.syntax.lookalikes _hint
-- hint: {}: {}
-- take: the query comes first: (.*)
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
«PREDICT y USING of_numbers FROM t»;

-- site: sqlflow_edl.syntax.lookalikes _hint
-- hint: {}: {}
-- take: the rows are a query in parentheses: (.*)
«SELECT x, y FROM t TO TRAIN DNNRegressor VALIDATE ON t LABEL y INTO m»;

-- site: sqlflow_edl.syntax.lookalikes _hint
-- hint: {}: {}
-- take: write two statements: (.*)
-- run
«SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO m TO EVALUATE m»;

-- site: sqlflow_edl.syntax.lookalikes _hint
-- hint: {}: {}
-- take: put a semicolon before SELECT: (.*)
«SELECT x FROM t SELECT y FROM t»;

-- site: sqlflow_edl.syntax.lookalikes _hint
-- hint: {}: {}
-- take: behind the query: (.*)
«SELECT TOP 5 x FROM t»;

-- site: sqlflow_edl.syntax.lookalikes _hint
-- hint: {}: {}
-- take: leave out df =: (.*)
«df = SELECT x FROM t»;

-- site: sqlflow_edl.syntax.lookalikes _hint
-- hint: {}: {}
-- take: compare with =: (.*)
«SELECT x FROM t WHERE k is red»;

-- site: sqlflow_edl.syntax.lookalikes _hint
-- hint: {}: {}
-- take: WHERE is of the query: (.*)
«SELECT x, y FROM t LABEL y WHERE x > 1 INTO m»;

-- site: sqlflow_edl.syntax.lookalikes _hint
-- hint: {}: {}
-- take: compute the label in the SELECT: (.*)
«SELECT x, k FROM t LABEL k = 'red' INTO m»;

-- site: sqlflow_edl.syntax.lookalikes _hint
-- hint: {}: {}
-- take: write straight quotes: (.*)
«SELECT x, y FROM t TO TRAIN DNNRegressor WITH model.framework = “torch” LABEL y INTO m»;

-- site: sqlflow_edl.syntax.error_messages _comma_before_clause_hint
-- hint: leave out the comma before {}
-- take: leave out the comma
SELECT x, y FROM t TO TRAIN DNNRegressor«,» LABEL y INTO m;

-- site: sqlflow_edl.extensions.bigquery_ml.value_functions _express
-- hint: write {}
-- take: write (ML\.BUCKETIZE\(x, \[1, 2\]\))
-- run
SELECT «ML.BUCKETIZE(x, [2, 1])» AS b FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.value_functions _express
-- hint: write {}
-- take: write (ML\.MIN_MAX_SCALER\(x\) OVER \(\))
-- run
SELECT «ML.MIN_MAX_SCALER(x)» AS b FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.value_functions _express
-- hint: write {}
-- take: write (ML\.MIN_MAX_SCALER\(x\) OVER \(\))
-- run
SELECT «ML.MIN_MAX_SCALER(x, 2) OVER ()» AS b FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.options _penalty
-- hint: leave it out, or write optimizer = 'FTRL', which has {}
-- take: leave it out, or
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'DNN_REGRESSOR', max_iterations = 1, optimizer = 'SGD', input_label_cols = ['y']«, l1_reg = 0.1») AS SELECT x, y FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.options _penalty
-- hint: leave it out, or write optimizer = 'FTRL', which has {}
-- take: write (optimizer = 'FTRL')
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'DNN_REGRESSOR', max_iterations = 1, «optimizer = 'SGD'», input_label_cols = ['y'], l1_reg = 0.1) AS SELECT x, y FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.options _booster
-- hint: write GBTREE or DART
-- take: or (DART)
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'BOOSTED_TREE_REGRESSOR', max_iterations = 2, booster_type = '«STEPS»', input_label_cols = ['y']) AS SELECT x, y FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.options _clusters
-- hint: write one number, such as {}, and compare models by ML.EVALUATE
-- take: such as (2)
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'KMEANS', num_clusters = «HPARAM_RANGE(2, 4)») AS SELECT x, w FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.options _clusters
-- hint: leave it out
-- take: leave it out
-- as:  
-- as: 2
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'KMEANS'«, num_trials = 2», num_clusters = «HPARAM_RANGE(2, 4)») AS SELECT x, w FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.options _limit
-- hint: leave it out, and write {}(forecast_value, {}) in the query with ML.FORECAST
-- take: leave it out
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'ARIMA_PLUS', time_series_timestamp_col = 'day', time_series_data_col = 'sold', time_series_id_col = 'store', horizon = 3«, forecast_limit_upper_bound = 9») AS SELECT day, sold, store FROM days;

-- site: sqlflow_edl.extensions.bigquery_ml.options 
-- hint: leave it out
-- take: leave it out
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['y']«, calculate_p_values = 3») AS SELECT x, y FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.options 
-- hint: leave it out: a new tree weighs as much as each dropped one
-- take: leave it out
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'BOOSTED_TREE_REGRESSOR', max_iterations = 2, booster_type = 'DART', input_label_cols = ['y']«, dart_normalize_type = 'FOREST'») AS SELECT x, y FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.transform _is_left_out
-- hint: compute it in the SELECT, or give it another name than its column
-- take: compute it in the SELECT
-- as: z
-- as: , 2 * y AS z
CREATE OR REPLACE MODEL bq TRANSFORM(x, «ML.LABEL_ENCODER(y) OVER () AS z») OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['z']) AS SELECT x, y«» FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.transform _powers
-- hint: write ML.POLYNOMIAL_EXPAND(STRUCT(x, y), 2)
-- take: write (ML.POLYNOMIAL_EXPAND\(STRUCT\(x, y\), 2\))
CREATE OR REPLACE MODEL bq TRANSFORM(«ML.POLYNOMIAL_EXPAND(x)», w) OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['w']) AS SELECT x, y, w FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.transform _words
-- hint: write ML.{}(SPLIT(x, ' '), 1000) OVER ()
-- take: write (ML.BAG_OF_WORDS\(SPLIT\()x(, ' '\), 1000\) OVER \(\))
-- as: \1k\2
CREATE OR REPLACE MODEL bq TRANSFORM(«ML.BAG_OF_WORDS(k) OVER ()», y) OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['y']) AS SELECT k, y FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.transform _item
-- hint: write * EXCEPT (x)
-- take: write (\* EXCEPT \(x\))
CREATE OR REPLACE MODEL bq TRANSFORM(«* REPLACE (1 AS x)») OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['y']) AS SELECT x, w, y FROM t;

-- site: sqlflow_edl.syntax.predict_calls _call_of_rows
-- hint: write {}({})
-- take: write (ML.VALIDATE_DATA_DRIFT\(TABLE )my_table(, )\(SELECT …\)\)
-- as: \1t\2(SELECT x FROM t WHERE x > 2))
SELECT * FROM «ML.VALIDATE_DATA_DRIFT(TABLE t)»;

-- site: sqlflow_edl.extensions.bigquery_ml.create_model _statement
-- hint: compute columns in the SELECT
-- take: compute columns in the SELECT
-- as:  
-- as: n + 1 AS n
CREATE OR REPLACE MODEL bq «TRANSFORM(n + 1 AS n)» OPTIONS(model_type = 'MATRIX_FACTORIZATION', max_iterations = 1, user_col = 'n', item_col = 'k', rating_col = 'y') AS SELECT «n», k, y FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.factorization check_feedback
-- hint: write EXPLICIT or IMPLICIT
-- take: write (EXPLICIT) or
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'MATRIX_FACTORIZATION', max_iterations = 1, user_col = 'n', item_col = 'k', rating_col = 'y', feedback_type = '«SILENT»') AS SELECT n, k, y FROM t;

-- site: sqlflow_edl.extensions.bigquery_ml.factorization check_feedback
-- hint: write {} = '{}'
-- take: write (user_col = )'user'
-- as: \1'n'
CREATE OR REPLACE MODEL bq OPTIONS(model_type = 'MATRIX_FACTORIZATION', max_iterations = 1, «user_col = 3», item_col = 'k', rating_col = 'y') AS SELECT n, k, y FROM t;

-- site: sqlflow_edl.session.advice.columns _selects
-- hint: {}: select {}, too
-- take: select (\w+), too
-- as: , \1
SELECT x«» FROM t LABEL y INTO m;

-- site: sqlflow_edl.session.advice.columns advise_label_option
-- hint: write {}, or another column that is to be predicted
-- take: write (input_label_cols = \['\w+'\])
-- as: , \1
CREATE MODEL m OPTIONS(model_type = 'LINEAR_REG'«») AS SELECT x, y FROM t;

-- site: sqlflow_edl.session.advice.columns advise_without_options
-- hint: the short form needs no model type, only the column that is to be predicted, such as {}
-- take: such as (\w+)
-- as: SELECT x, is_new FROM t LABEL \1 INTO m
«CREATE MODEL m AS SELECT x, is_new FROM t»;

-- site: sqlflow_edl.session.advice.columns advise_missing
-- hint: {} has no {}; with NULL the model predicts as for unknown values
-- take: has no (\w+);
-- as: , CAST(NULL AS DOUBLE) AS \1
-- first: CREATE OR REPLACE TABLE days_x AS SELECT x FROM t; SELECT x, w, n FROM t TO TRAIN BoostedTreesRegressor WITH train.epoch = 2 LABEL n INTO lacking;
SELECT x«» FROM days_x TO PREDICT USING lacking;

-- site: sqlflow_edl.session.advice.columns _advise_prediction
-- hint: {} has no {} to compare predictions with; PREDICT needs none
-- take: ; (PREDICT) needs
-- as: \1 USING
-- first: CREATE OR REPLACE TABLE days_w AS SELECT x, w FROM t; SELECT x, w, n FROM t TO TRAIN BoostedTreesRegressor WITH train.epoch = 2 LABEL n INTO lacking;
SELECT x, w FROM days_w TO «EVALUATE» lacking;

-- site: sqlflow_edl.session.advice.columns advise_unfit
-- hint: {} {}
-- take: write (.+)
-- first: SELECT x, w, n FROM t TO TRAIN BoostedTreesRegressor WITH train.epoch = 2 LABEL n INTO lacking;
SELECT x, «w» FROM (SELECT x, w::VARCHAR AS w FROM t) AS u TO PREDICT USING lacking;

-- site: sqlflow_edl.session.advice.columns advise_text_operand
-- hint: {} holds categories, such as {}: write {} alone
-- take: write (\w+) alone
SELECT x, k, y FROM t TO TRAIN DNNRegressor COLUMN «LOG(k)», x LABEL y INTO m;

-- site: sqlflow_edl.session.advice.columns advise_text_operand
-- hint: its texts are numbers: select {}
-- take: select (.+)
SELECT x, «u», y FROM (SELECT x, y, id::VARCHAR AS u FROM t) AS q TO TRAIN DNNRegressor COLUMN LOG(u), x LABEL y INTO m;

-- site: sqlflow_edl.session.advice.columns text_advice
-- hint: {} holds categories, such as {}: use {} itself
-- take: use (\w+) itself
SELECT «k + 1» AS a FROM t;

-- site: sqlflow_edl.session.advice.columns text_advice
-- hint: {} is a text such as {}: write {}
-- take: : write (.+)
SELECT «u + 1» AS a FROM (SELECT n || ' months' AS u FROM t) AS q;

-- site: sqlflow_edl.session.advice.conditions advise_no_rows
-- hint: leave {} out
-- take: leave LIMIT 0 out
SELECT x, y FROM t «LIMIT 0» TO TRAIN DNNRegressor WITH train.epoch = 1 LABEL y INTO m;

-- site: sqlflow_edl.session.advice.conditions _null
-- hint: a comparison with NULL is never true: write {}
-- take: write (gap IS NULL)
SELECT x, y FROM t WHERE «gap = NULL» TO TRAIN DNNRegressor WITH train.epoch = 1 LABEL y INTO m;

-- site: sqlflow_edl.session.advice.conditions _pattern
-- hint: LIKE tells capitals from small letters: write {}
-- take: write (.+)
SELECT x, y FROM t WHERE «k LIKE 'R%'» TO TRAIN DNNRegressor WITH train.epoch = 1 LABEL y INTO m;

-- site: sqlflow_edl.session.advice.conditions _range
-- hint: {}: write, for example, {}
-- take: for example, (\S+)
SELECT x, y FROM t WHERE id > «1000» TO TRAIN DNNRegressor WITH train.epoch = 1 LABEL y INTO m;

-- site: sqlflow_edl.session.advice.conditions _advise_literal
-- hint: {} is a date, which is written {}
-- take: written ('.+')
SELECT x FROM t WHERE day > «'01.02.2024'»;

-- site: sqlflow_edl.session.advice.conditions _advise_literal
-- hint: {} is a number: write, for example, {}
-- take: for example, (\d+)
SELECT x FROM t WHERE id > «'abc'»;

-- site: sqlflow_edl.session.advice.conditions _advise_literal
-- hint: {} is a boolean: TRUE or FALSE
-- take: (TRUE) or
SELECT x FROM t WHERE is_new = «'maybe'»;

-- site: sqlflow_edl.session.advice.models advise_no_model
-- hint: {} is a model: TO PREDICT USING {}
-- take: TO PREDICT (USING \w+)
-- first: SELECT x, w, n FROM t TO TRAIN BoostedTreesRegressor WITH train.epoch = 2 LABEL n INTO lacking;
SELECT x, w FROM t TO PREDICT «lacking»;

-- site: sqlflow_edl.session.advice.models advise_architecture
-- hint: {}; without TO TRAIN the best model is searched
-- take: without TO TRAIN
SELECT x, y FROM t «TO TRAIN days» LABEL y INTO m;

-- site: sqlflow_edl.session.advice.models advise_no_model
-- hint: add USING {}{}
-- take: add (USING \w+)
-- first: SELECT x, w, n FROM t TO TRAIN BoostedTreesRegressor WITH train.epoch = 2 LABEL n INTO lacking;
-- as:  \1
SELECT x, w FROM t TO PREDICT p_lacking.n«»;

-- site: sqlflow_edl.session.advice.models _say_none_kept
-- hint: {} keeps no models: give the {} that has it, or train it{}
-- take: or train it: (.+)
-- source: duckdb:
-- then: my_table
«SELECT 1 AS x TO EVALUATE nothing»;

-- site: sqlflow_edl.session.advice.columns advise_text_label
-- hint: its texts are numbers, such as {}: select {}
-- take: select (.+)
SELECT x, «u» FROM (SELECT x, '€ ' || replace(y::VARCHAR, '.', ',') AS u FROM t) AS q TO TRAIN DNNRegressor LABEL u INTO m;

-- site: sqlflow_edl.session.advice.conditions _label_value
-- hint: {}, the label, is {}: leave the condition out, for one class teaches nothing
-- take: leave the condition out
-- as:
SELECT x, k FROM t «WHERE k = 'zz'» TO TRAIN DNNClassifier LABEL k INTO m;

-- site: sqlflow_edl.session.advice.columns advise_needless_label
-- hint: leave LABEL {} out, and out of the SELECT: {}
-- take: out of the SELECT: (.+)
-- as: \1 TO TRAIN KMeans WITH model.n_clusters = 3 INTO m
«SELECT x, n FROM t TO TRAIN KMeans WITH model.n_clusters = 3 LABEL n INTO m»;

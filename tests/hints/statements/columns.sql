-- site: sqlflow_edl.analysis.columns.categories category_ids.fit
-- hint: write BUCKETIZE({}, 10)
-- take: (BUCKETIZE\(debt, 10\))
SELECT debt, y FROM t TO TRAIN DNNRegressor COLUMN «CATEGORY_ID(debt, 3)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.categories category_ids.fit
-- hint: write VOCABULARIZE({}) or CATEGORY_HASH({}, 1000)
-- take: write (VOCABULARIZE\(n\))
SELECT n - 2 AS n, y FROM t TO TRAIN DNNRegressor COLUMN «CATEGORY_ID(n, 3)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.items _check_required
-- hint: write {}
-- take: write VOCABULARIZE\(x(, max_size=1000, min_count=2\))
-- as: VOCABULARIZE(k\1
SELECT k, y FROM t TO TRAIN DNNRegressor COLUMN «VOCABULARIZE()» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.numeric log.fit
-- hint: write STANDARDIZE({}), or shift it in the SELECT
-- take: write (STANDARDIZE\(.+?\))
SELECT debt, y FROM t TO TRAIN DNNRegressor COLUMN «LOG(debt)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.drafts Bound.numeric_column
-- hint: a time becomes a feature by STANDARDIZE({}), BUCKETIZE({}, 10) or its parts
-- take: by (STANDARDIZE\(\w+\))
SELECT moment, y FROM t TO TRAIN DNNRegressor COLUMN «NUMERIC(moment)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.drafts Bound.temporal_column
-- hint: cast it in the SELECT: {}
-- take: in the SELECT: (.+)
SELECT «date_text», y FROM t TO TRAIN DNNRegressor COLUMN MONTH(date_text) LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.computed _operation
-- hint: write x * x for a square
-- take: write (x \* x) for a square
SELECT x, y FROM t TO TRAIN DNNRegressor COLUMN «x ^ 2» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.inputs written_input
-- hint: leave FOR out
-- take: leave FOR out
SELECT x, y FROM t TO TRAIN DNNRegressor COLUMN x «FOR deep» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.items Resolver._visible
-- hint: take it out of COLUMN
-- take: take it out of COLUMN
SELECT x, y FROM t TO TRAIN DNNRegressor COLUMN x«, y» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.categories category_ids.fit
-- hint: write {}({}, {})
-- take: write (\w+\(.+\))
SELECT n, y FROM t TO TRAIN DNNRegressor COLUMN «CATEGORY_ID(n, 3)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.trees _count_ids
-- hint: write fewer buckets, such as NGRAMS(x, 3, 500)
-- take: write fewer buckets, such as (NGRAMS\(\w, 3, 500\))
SELECT k AS x, y FROM t TO TRAIN BoostedTreesRegressor COLUMN «NGRAMS(x, 3, 100000)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.computed bind_expression
-- hint: such as x / 2
-- take: such as (x / 2)
SELECT x, y FROM t TO TRAIN DNNRegressor COLUMN «2 / 3» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.computed _of_rows
-- hint: compute the expression in the SELECT, or write a number for NULL: COALESCE(x / y, 0)
-- take: COALESCE(\(x / y, 0\))
SELECT x, w AS y, debt FROM t TO TRAIN DNNRegressor COLUMN IMPUTE«(x / y, mean)» LABEL debt INTO m;

-- site: sqlflow_edl.analysis.columns.trees fit_column
-- hint: write the category itself, such as CATEGORY_HASH(x, 1000)
-- take: such as (CATEGORY_HASH\()x(, 1000\))
SELECT k, y FROM t TO TRAIN BoostedTreesRegressor COLUMN «EMBEDDING(»k«)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.categories category_ids.fit
-- hint: write {}({}, {})
-- take: leave it out of COLUMN|write (CATEGORY_ID\(n, 5\))
SELECT n, y FROM t TO TRAIN DNNRegressor COLUMN «CATEGORY_ID(n, 2)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.categories bucket
-- hint: sorted: {}
-- take: sorted: (.+)
SELECT x, y FROM t TO TRAIN DNNRegressor COLUMN BUCKET(x, «[2, 1]») LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.items Resolver._name
-- hint: give one of them another name
-- take: give one of them another name
SELECT x, w, y FROM t TO TRAIN DNNRegressor COLUMN x / 2 AS a, «w / 2 AS a» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.items _arguments
-- hint: keep one
-- take: keep one
SELECT x, y FROM t TO TRAIN DNNRegressor COLUMN BUCKETIZE(x, 5«, num_buckets=6») LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.shared _check_alike
-- hint: write one function with one size, as in EMBEDDING([CATEGORY_ID(a, 9), CATEGORY_ID(b, 9)], 8)
-- take: write one function with one size, as in (EMBEDDING\(\[CATEGORY_ID\()a, 9\), CATEGORY_ID\(b, 9\)\], 8\)
-- as: EMBEDDING([CATEGORY_ID(n, 9), CATEGORY_ID(flag, 9)], 8)
SELECT n, n % 2 AS flag, y FROM t TO TRAIN DNNRegressor COLUMN «EMBEDDING([CATEGORY_ID(n, 9), CATEGORY_ID(flag, 8)], 8)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.shared share_vectors
-- hint: name each column once
-- take: name each column once
SELECT k, y FROM t TO TRAIN DNNRegressor COLUMN EMBEDDING([k«, k»], 8) LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.categories vocabulary.fit
-- hint: leave it out
-- take: leave it out
SELECT x, NULL::VARCHAR AS e, y FROM t TO TRAIN DNNRegressor COLUMN x«, VOCABULARIZE(e)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.categories concat
-- hint: write the categories of both in one
-- take: write the categories of both in one
SELECT k, n, flag, y FROM t TO TRAIN DNNRegressor COLUMN CONCAT(«CONCAT(»CATEGORY_HASH(k, 9), CATEGORY_HASH(n, 9)«)», CATEGORY_HASH(flag, 9)) LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.computed check_call
-- hint: write {}
-- take: write (LN\(x\))
SELECT x, y FROM t TO TRAIN DNNRegressor COLUMN «LN(x, 2)» + 1 LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.computed check_call
-- hint: write {}
-- take: write (COALESCE\(.+\))
SELECT x, y FROM t TO TRAIN DNNRegressor COLUMN «COALESCE(x)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.computed _number
-- hint: the median of a date or time counts in seconds: IMPUTE({}, median)
-- take: (IMPUTE\(day, median\))
SELECT day, y FROM t TO TRAIN DNNRegressor COLUMN «IMPUTE(day, mode)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.computed _operation
-- hint: + - * / are possible; compute it in the SELECT
-- take: compute it in the SELECT
-- as: , n % 2 AS odd_n
-- as: odd_n
SELECT n, y«» FROM t TO TRAIN DNNRegressor COLUMN «n % 2» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.computed check_call
-- hint: write {}
-- take: write (JSON\(.+\))
SELECT payload, y FROM t TO TRAIN DNNRegressor COLUMN «JSON(payload)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.computed _no_number
-- hint: such as x / (y + 1), LN(x), COALESCE(x, 0)
-- take: (COALESCE\(x, 0\))
SELECT x, w, y FROM t TO TRAIN DNNRegressor COLUMN «COALESCE(x, [1])» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.computed _function
-- hint: they have {}; compute others in the SELECT
-- take: compute others in the SELECT
-- as: , sin(x) AS s
-- as: s
SELECT x, y«» FROM t TO TRAIN DNNRegressor COLUMN «TANH(x) + 1» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.encodings of_label
-- hint: leave it out, or use EMBEDDING or COUNT_ENCODE
-- take: leave it out, or use EMBEDDING or COUNT_ENCODE
SELECT x, k, y, w FROM t TO TRAIN DNN COLUMN x«, TARGET_ENCODE(k)» LABEL y, w INTO m;

-- site: sqlflow_edl.analysis.columns.encodings of_label
-- hint: leave it out, or use EMBEDDING or COUNT_ENCODE
-- take: or use EMBEDDING or (COUNT_ENCODE)
SELECT x, k, y, w FROM t TO TRAIN DNN COLUMN x, «TARGET_ENCODE»(k) LABEL y, w INTO m;

-- site: sqlflow_edl.analysis.columns.encodings of_label
-- hint: up to {} are possible; COUNT_ENCODE and EMBEDDING do not depend on the classes
-- take: (COUNT_ENCODE) and EMBEDDING do not
SELECT k, id % 120 AS c FROM t TO TRAIN DNNClassifier COLUMN «TARGET_ENCODE»(k) LABEL c INTO m;

-- site: sqlflow_edl.analysis.columns.categories frequent_values
-- hint: leave it out
-- take: leave it out
SELECT x, NULL::VARCHAR AS e, y FROM t TO TRAIN DNNRegressor COLUMN x«, TARGET_ENCODE(e)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.numeric draft_bins.fit
-- hint: leave it out
-- take: leave it out
SELECT x, 1.5 AS e, y FROM t TO TRAIN DNNRegressor COLUMN x«, PLE(e)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.items Resolver._combine_values
-- hint: write COMBINE(a, b)
-- take: write (COMBINE\(a, b\))
SELECT x AS a, w AS b, y FROM t TO TRAIN DNNRegressor COLUMN «COMBINE()» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.items _unknown_function
-- hint: CONCAT(a, b) makes one category of several
-- take: (CONCAT)\(a, b\) makes one
SELECT k, n, y FROM t TO TRAIN DNNRegressor COLUMN EMBEDDING(«COMBINE»(CATEGORY_HASH(k, 9), CATEGORY_HASH(n, 9)), 4) LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.items _unknown_function
-- hint: write x * x for a square, or compute it in the SELECT
-- take: write (x \* x) for a square
SELECT x, y FROM t TO TRAIN DNNRegressor COLUMN «POWER(x, 2)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.items _unknown_function
-- hint: compute it in the SELECT, or use one of {}
-- take: compute it in the SELECT
-- as: , sin(x) AS s
-- as: s
SELECT x, y«» FROM t TO TRAIN DNNRegressor COLUMN «FROBNICATE(x)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.items Resolver._operand
-- hint: cast it in the SELECT if it holds numbers; of a text, NULL is a category of its own
-- take: cast it in the SELECT if
-- as: CAST(u AS DOUBLE) AS u
-- looks: no
SELECT «u», y FROM (SELECT n::VARCHAR AS u, y FROM t) AS s TO TRAIN DNNRegressor COLUMN u + 1 LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.items Resolver._column
-- hint: put the item with AS {} before this one
-- take: put the item with AS a before
-- as: x / 2 AS a,
-- as:  
SELECT x, y FROM t TO TRAIN DNNRegressor COLUMN «» BUCKETIZE(a, 3)«, x / 2 AS a» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.shared _check_alike
-- hint: cast them to one type in the SELECT
-- take: to one type
-- as: n::VARCHAR AS n
SELECT «n», k, y FROM t TO TRAIN DNNRegressor COLUMN EMBEDDING([VOCABULARIZE(n), VOCABULARIZE(k)], 8) LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.trees _count_ids
-- hint: keep the frequent ones with VOCABULARIZE(x, max_size=500), or hash them into fewer
-- take: keep the frequent ones with (VOCABULARIZE\()x(, max_size=500)\), or hash
-- as: \1tags, delimiter=","\2)
SELECT tags, y FROM t TO TRAIN BoostedTreesRegressor COLUMN «CATEGORY_HASH(tags, 100000, ",")» LABEL y INTO m;

-- site: sqlflow_edl.extensions.optimization.terms Terms._comparisons
-- hint: <=, >= and = are possible
-- take: (<=), >= and = are possible
SELECT id, x FROM t WHERE id < 10 TO MAXIMIZE SUM(x * amount) CONSTRAINT amount «<>» 3, amount >= 0 WITH variables = "amount(id)", var_type = "Reals";

-- site: sqlflow_edl.analysis.columns.categories vocabulary.fit
-- hint: write CATEGORY_HASH({}, 100000), or keep the frequent ones with max_size=
-- take: write (CATEGORY_HASH\(u, 100000\))
SELECT u, i AS y FROM (SELECT i::VARCHAR AS u, i FROM range(1_100_000) AS r(i)) AS q TO TRAIN DNNRegressor COLUMN «VOCABULARIZE(u)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.computed _json
-- hint: write {}
-- take: write (JSON\(payload.+\))
SELECT payload, y FROM t TO TRAIN DNNRegressor COLUMN «JSON(x + 1, '$.user.age')» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.computed _text_number
-- hint: write {}
-- take: write (TO_NUMBER\()price\),
-- as: \1u)
SELECT n::VARCHAR AS u, y FROM t TO TRAIN DNNRegressor COLUMN «TO_NUMBER(u, ';')» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.computed _no_number
-- hint: such as x / (y + 1), LN(x), COALESCE(x, 0)
-- take: such as x / \(y \+ 1\), (LN\(x\))
SELECT x, w, y FROM t TO TRAIN DNNRegressor COLUMN «x + 'a'» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.items _arguments
-- hint: write {}
-- take: or (BUCKETIZE\(x, boundaries=\[10, 20\.5\]\))
SELECT x * 20 AS x, y FROM t TO TRAIN DNNRegressor COLUMN «BUCKETIZE(x, 5, 6, 7)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.items _no_category
-- hint: categories are made by VOCABULARIZE, CATEGORY_HASH, CATEGORY_ID, BUCKETIZE, CROSS
-- take: made by (VOCABULARIZE)
SELECT n, y FROM t TO TRAIN DNNRegressor COLUMN EMBEDDING(«STANDARDIZE»(n), 4) LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.items Resolver._resolve_embedding
-- hint: write {}
-- take: write (EMBEDDING\(x, 8\))
SELECT k AS x, y FROM t TO TRAIN DNNRegressor COLUMN «EMBEDDING([], 4)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.items Resolver._cells
-- hint: write {}
-- take: write (VOCABULARIZE\(x)
-- as: \1)
SELECT k AS x, y FROM t TO TRAIN DNNRegressor COLUMN «VOCABULARIZE(STANDARDIZE(x))» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.items Resolver._categories
-- hint: CONCAT(a, b) makes one of several
-- take: (CONCAT)\(a, b\) makes one of several
-- as: CONCAT(CATEGORY_HASH(k, 9), CATEGORY_HASH(n, 9))
SELECT k, n, y FROM t TO TRAIN DNNRegressor COLUMN INDICATOR(«[CATEGORY_HASH(k, 9), CATEGORY_HASH(n, 9)]») LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.items _convert_value
-- hint: write {}
-- take: write (CATEGORY_HASH\(x, \d+\))
SELECT k AS x, y FROM t TO TRAIN DNNRegressor COLUMN «CATEGORY_HASH(x, 'a')» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.numeric vector.fit
-- hint: leave it out
-- take: leave it out
SELECT x, '' AS e, y FROM t TO TRAIN DNNRegressor COLUMN x«, DENSE(e)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.numeric vector.fit
-- hint: leave it out
-- take: leave it out
SELECT x, NULL::VARCHAR AS e, y FROM t TO TRAIN DNNRegressor COLUMN x«, DENSE(e)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.inputs written_input
-- hint: write FOR {}
-- take: write FOR wide or FOR (\w+)
SELECT x, k, y FROM t TO TRAIN DNNLinearCombinedRegressor COLUMN k FOR wide COLUMN x FOR «sideways» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.drafts Bound.numeric_column
-- hint: a text becomes a feature by VOCABULARIZE({}) or CATEGORY_HASH({}, 1000), numbers in a text by DENSE({})
-- take: by (VOCABULARIZE\(\w+\)) or
-- looks: no
SELECT k, y FROM t TO TRAIN DNNRegressor COLUMN «STANDARDIZE(k)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.drafts Bound.numeric_column
-- hint: a text becomes a feature by VOCABULARIZE({}) or CATEGORY_HASH({}, 1000), numbers in a text by DENSE({})
-- take: or (CATEGORY_HASH\(\w+, 1000\))
-- looks: no
SELECT k, y FROM t TO TRAIN DNNRegressor COLUMN «STANDARDIZE(k)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.drafts Bound.numeric_column
-- hint: a text becomes a feature by VOCABULARIZE({}) or CATEGORY_HASH({}, 1000), numbers in a text by DENSE({})
-- take: numbers in a text by (DENSE\(cells\))
SELECT cells, y FROM t TO TRAIN DNNRegressor COLUMN «STANDARDIZE(cells)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.drafts Bound.temporal_column
-- hint: compute {} in the SELECT, and name its column
-- take: compute a time in the SELECT, and name its column
-- as: , moment AS a
-- as: a
SELECT payload, moment, y«» FROM t TO TRAIN DNNRegressor COLUMN HOUR(«JSON(payload, '$.user.age')») LABEL y INTO m;

-- site: sqlflow_edl.analysis.several_labels check
-- hint: leave them out
-- take: leave them out
SELECT x, y FROM t TO TRAIN DNNRegressor WITH epochs = 2«, train.label_weights = [1]» LABEL y INTO m;

-- site: sqlflow_edl.analysis.several_labels check
-- hint: train a DNN, a network that predicts several; or {}
-- take: train a (DNN),
SELECT x, y, w FROM t TO TRAIN «BoostedTreesRegressor» LABEL y, w INTO m;

-- site: sqlflow_edl.analysis.several_labels check
-- hint: leave it out
-- take: leave it out
SELECT x, y, w FROM t TO TRAIN DNN WITH epochs = 2«, validation.calibration = temperature» LABEL y, w INTO m;

-- site: sqlflow_edl.analysis.several_labels check
-- hint: leave it out
-- take: leave it out
SELECT x, y, w FROM t TO TRAIN DNN WITH epochs = 2«, train.class_weights = balanced» LABEL y, w INTO m;

-- site: sqlflow_edl.analysis.several_labels check
-- hint: leave it out
-- take: leave it out
SELECT x, y, w FROM t TO TRAIN DNN WITH epochs = 2«, model.n_classes = 3» LABEL y, w INTO m;

-- site: sqlflow_edl.analysis.several_labels check
-- hint: leave out a label that is not to be learned
-- take: leave out a label
SELECT x, y, w FROM t TO TRAIN DNN WITH epochs = 2«, train.label_weights = [1, 0]» LABEL y«, w» INTO m;

-- site: sqlflow_edl.analysis.several_labels refuse_search
-- hint: name a network and one value for each attribute: TO TRAIN DNN predicts several; or {}
-- take: TO TRAIN (DNN) predicts several
-- as: TO TRAIN \1 
SELECT x, y, w FROM t «»LABEL y, w INTO m;

-- site: sqlflow_edl.analysis.train_settings _framework
-- hint: leave model.framework out
-- take: leave model.framework out
SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH epochs = 2«, model.framework = torch» LABEL y INTO m;

-- site: sqlflow_edl.analysis.train_settings _framework
-- hint: leave model.framework out
-- take: leave model.framework out
SELECT x, y FROM t TO TRAIN Linear«Regressor WITH model.framework = lightgbm» LABEL y INTO m;

-- site: sqlflow_edl.analysis.measurement check
-- hint: write SELECT … FROM … before TO EVALUATE
-- take: write SELECT … FROM … before TO EVALUATE
-- as: SELECT x, y FROM t
«»
TO EVALUATE WITH evaluate.prediction = x LABEL y;

-- site: sqlflow_edl.analysis.measurement _Planner._report
-- hint: leave evaluate.report out
-- take: leave evaluate.report out
SELECT x, y FROM t TO EVALUATE WITH evaluate.prediction = x«, evaluate.report = confusion_matrix» LABEL y;

-- site: sqlflow_edl.analysis.measurement _Planner._with_itself
-- hint: name the column of the predictions here, and that of the true values behind LABEL
-- take: name the column of the predictions here
-- as: x
SELECT x, y FROM t TO EVALUATE WITH evaluate.prediction = «y» LABEL y;

-- site: sqlflow_edl.analysis.alternatives 
-- hint: train a BoostedTreesRanker WITH train.group_column = query_id
-- take: train a (BoostedTreesRanker WITH train.group_column = query_id)
SELECT x, page AS query_id, n FROM t TO TRAIN «LambdaMART» LABEL n INTO m;

-- site: sqlflow_edl.analysis.alternatives 
-- hint: train an Autoencoder WITH model.hidden_units = [32, 8, 32], without a LABEL
-- take: train an (Autoencoder WITH model.hidden_units = \[32, 8, 32\])
SELECT x, y, w FROM t TO TRAIN «DenoisingAutoencoder» INTO m;

-- site: sqlflow_edl.analysis.alternatives 
-- hint: train a PCA WITH model.num_components = 2, without a LABEL
-- take: train a (PCA WITH model.num_components = 2)
SELECT x, y, w FROM t TO TRAIN «TruncatedSVD» INTO m;

-- site: sqlflow_edl.analysis.columns.categories require_weights
-- hint: write SPARSE(x, 1000, ",", kv_delimiter=":")
-- take: write SPARSE\(x(, 1000, ",", kv_delimiter=":"\))
-- as: SPARSE(pairs\1
SELECT pairs, y FROM (SELECT '1:0.5,2:' || w AS pairs, y FROM t) AS q TO TRAIN DNNRegressor COLUMN EMBEDDING(WEIGHTED_CATEGORY(«SPARSE(pairs, 1000, ",")»), 3) LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.drafts Bound.fail
-- hint: write {}
-- take: write (BUCKETIZE)
-- as: \1(x, 5)
SELECT x, y FROM t TO TRAIN DNNRegressor COLUMN «BUCKETIZE(x)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.items Resolver._column
-- hint: AS {} names a feature, and a column is needed here
-- take: AS xb names a feature
-- as: x
SELECT x, y FROM t TO TRAIN DNNRegressor COLUMN BUCKETIZE(x, 5) AS xb, STANDARDIZE(«xb») LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.items Resolver._column
-- hint: AS {} names several features, and one column is needed here
-- take: one column is needed here
-- as: x
SELECT x, w, y FROM t TO TRAIN DNNRegressor COLUMN COMBINE(x, w) AS pair, BUCKETIZE(«pair», 5) LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.drafts Bound.temporal_column
-- hint: declare it as TIMESTAMP in its table
-- take: declare it as (TIMESTAMP) in its table
-- on: sqlite
-- first: DROP TABLE IF EXISTS dated; CREATE TABLE dated (d TEXT, y DOUBLE, z TIMESTAMP); INSERT INTO dated SELECT date_text, y, date_text || ' 01:00:00' FROM t;
-- as: z
-- as: z
SELECT «d», y FROM dated TO TRAIN DNNRegressor COLUMN HOUR(«d») LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.items Resolver._item
-- hint: such as age, BUCKETIZE(age, 5)
-- take: such as age, BUCKETIZE\(age(, 5\))
-- as: BUCKETIZE(x\1
SELECT x, w, y FROM t TO TRAIN DNNRegressor COLUMN COMBINE(«[x]», w) LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.computed bind_expression
-- hint: compute it in the SELECT
-- take: compute it in the SELECT
-- as: x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x))))))))))))))))))))))) AS s
-- as: s
SELECT «x», y FROM t TO TRAIN DNNRegressor COLUMN «x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x-(x)))))))))))))))))))))))» LABEL y INTO m;

-- site: sqlflow_edl.analysis.inference.column_types expression_of_training
-- hint: the training selected {}
-- take: the training selected (x \* 2 AS twice)
-- first: SELECT x * 2 AS twice, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_twice;
SELECT «x», y FROM t TO EVALUATE of_twice;

-- site: sqlflow_edl.analysis.columns.functions _sequence.fit
-- hint: a text of several ids has a delimiter: SEQUENCE(VOCABULARIZE(x, delimiter=","), 20)
-- take: (SEQUENCE\(VOCABULARIZE\()x(, delimiter=","\), 20\))
-- as: \1tags\2
SELECT tags, y FROM t TO TRAIN SequenceRegressor COLUMN «SEQUENCE(VOCABULARIZE(tags), 20)» LABEL y INTO m;

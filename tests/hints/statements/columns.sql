-- site: sqlflow_edl.analysis.columns.categories category_ids.fit
-- hint: write BUCKETIZE({}, 10)
-- take: (BUCKETIZE\(debt, 10\))
SELECT debt, y FROM t TO TRAIN DNNRegressor COLUMN «CATEGORY_ID(debt, 3)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.categories category_ids.fit
-- hint: write VOCABULARIZE({}) or CATEGORY_HASH({}, size)
-- take: write (VOCABULARIZE\(n\))
SELECT n - 2 AS n, y FROM t TO TRAIN DNNRegressor COLUMN «CATEGORY_ID(n, 3)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.items _check_required
-- hint: write {}
-- take: write VOCABULARIZE\(x(, max_size=1000, min_count=2\))
-- as: VOCABULARIZE(k\1
SELECT k, y FROM t TO TRAIN DNNRegressor COLUMN «VOCABULARIZE()» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.categories category_ids.fit
-- hint: write {}({}, {})
-- take: write (ML\.PREDICT\(MODEL )my_model, \(SELECT …\)\)
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
-- as: \1of_numbers, (SELECT x FROM t))
SELECT * FROM «ML.PREDICT(MODEL of_numbers)»;

-- site: sqlflow_edl.analysis.columns.categories _require_crossable
-- hint: write BUCKETIZE({}, 10) in its place
-- take: write (BUCKETIZE\(.+?\)) in its place
SELECT n, x, k, y FROM t TO TRAIN DNNRegressor COLUMN CROSS([«x», k], 100) LABEL y INTO m;

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

-- site: sqlflow_edl.analysis.columns.trees _counted
-- hint: write fewer buckets, such as NGRAMS(x, 3, 500)
-- take: write fewer buckets, such as (NGRAMS\(\w, 3, 500\))
SELECT k AS x, y FROM t TO TRAIN BoostedTreesRegressor COLUMN «NGRAMS(x, 3, 100000)» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.computed computed
-- hint: such as x / 2
-- take: such as (x / 2)
SELECT x, y FROM t TO TRAIN DNNRegressor COLUMN «2 / 3» LABEL y INTO m;

-- site: sqlflow_edl.analysis.columns.computed _of_rows
-- hint: compute the expression in the SELECT, or write a number for NULL: COALESCE(x / y, 0)
-- take: COALESCE(\(x / y, 0\))
SELECT x, w AS y, debt FROM t TO TRAIN DNNRegressor COLUMN IMPUTE«(x / y, mean)» LABEL debt INTO m;

-- site: sqlflow_edl.analysis.columns.trees fitted
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

-- site: sqlflow_edl.analysis.columns.shared shared
-- hint: name each column once
-- take: name each column once
SELECT k, y FROM t TO TRAIN DNNRegressor COLUMN EMBEDDING([k«, k»], 8) LABEL y INTO m;

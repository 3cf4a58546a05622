-- site: sqlflow_edl.analysis.rows.validation _check_label
-- hint: add WHERE {} to the query
-- take: add (WHERE .+) to the query
SELECT x, y AS gap FROM t TO TRAIN DNNRegressor LABEL gap VALIDATE ON (SELECT x, gap FROM t «») INTO m;

-- site: sqlflow_edl.analysis.rows.validation _check_label
-- hint: add WHERE {} to the query
-- take: add (WHERE .+) to the query
SELECT x, y AS odd FROM t TO TRAIN DNNRegressor LABEL odd VALIDATE ON (SELECT x, odd FROM t «») INTO m;

-- site: sqlflow_edl.analysis.rows.splits _time
-- hint: cast it: CAST({} AS DATE) AS {}
-- take: cast it: (CAST\(.+\) AS \w+)
SELECT x, «date_text», y FROM t TO TRAIN DNNRegressor WITH validation.split = time, validation.column = date_text LABEL y INTO m;

-- site: sqlflow_edl.analysis.rows.splits _without_classes
-- hint: write {} = random, time or group
-- take: write (\S+ = random)
SELECT x, y FROM t TO TRAIN DNNRegressor WITH «validation.split = stratified» LABEL y INTO m;

-- site: sqlflow_edl.analysis.rows.splits _written
-- hint: write {} = group, {} = time or {} = column
-- take: write (validation.split = group),
-- as: , \1
SELECT x, page, y FROM t TO TRAIN DNNRegressor WITH validation.column = page«» LABEL y INTO m;

-- site: sqlflow_edl.analysis.rows.splits _written
-- hint: write {} = group, {} = time or {} = column
-- take: or (validation.split = column)
-- as: , \1
SELECT x, is_new, y FROM t TO TRAIN DNNRegressor WITH validation.column = is_new«» LABEL y INTO m;

-- site: sqlflow_edl.analysis.rows.splits _written
-- hint: add {} = customer_id, for instance
-- take: add (\S+ = customer_id)
-- as: , \1
SELECT x, page AS customer_id, y FROM t TO TRAIN DNNRegressor WITH validation.split = group«» LABEL y INTO m;

-- site: sqlflow_edl.analysis.rows.splits _marked
-- hint: add {} = is_test, for instance
-- take: add (\S+ = is_test)
-- as: , \1
SELECT x, is_new AS is_test, y FROM t TO TRAIN DNNRegressor WITH validation.split = column«» LABEL y INTO m;

-- site: sqlflow_edl.analysis.rows.row_groups column
-- hint: add {} = query_id, for instance
-- take: add (\S+ = query_id)
-- as: WITH \1
SELECT x, page AS query_id, n FROM t TO TRAIN BoostedTreesRanker «» LABEL n INTO m;

-- site: sqlflow_edl.analysis.rows.splits _time
-- hint: name the column: {} = order_date
-- take: name the column: (\S+ = order_date)
-- as: , \1
SELECT x, k, day AS order_date, moment, y FROM t TO TRAIN DNNRegressor WITH validation.split = time«» LABEL y INTO m;

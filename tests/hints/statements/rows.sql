-- site: sqlflow_edl.analysis.rows.validation held_out_rows
-- hint: keep one of them
-- take: keep one of them
SELECT x, y FROM t TO TRAIN DNNRegressor WITH validation.fraction = 0.2 «VALIDATE 0.1» LABEL y INTO m;

-- site: sqlflow_edl.analysis.rows.validation held_out_rows
-- hint: leave it out, and EVALUATE the model on the rows to test it on
-- take: leave it out, and EVALUATE
SELECT x, y FROM t TO TRAIN DNNRegressor WITH train.batch_size = 20«, validation.test_fraction = 0.2» LABEL y VALIDATE ON (SELECT x, y FROM t) INTO m;

-- site: sqlflow_edl.analysis.rows.splits _split_by_mark
-- hint: leave the fraction out, or {} = column
-- take: leave the fraction out
SELECT x, y, is_new FROM t TO TRAIN DNNRegressor WITH validation.split = column, validation.column = is_new«, validation.fraction = 0.2» LABEL y INTO m;

-- site: sqlflow_edl.analysis.rows.splits _of_ranking
-- hint: write {} = group, or select the validation rows by a query: VALIDATE ON (SELECT …)
-- take: write (\S+ = group)
SELECT x, page, n FROM t TO TRAIN BoostedTreesRanker WITH train.group_column = page, «validation.split = random» LABEL n INTO m;

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

-- site: sqlflow_edl.analysis.rows.splits _split_as_written
-- hint: write {} = group, {} = time or {} = column
-- take: write (validation.split = group),
-- as: , \1
SELECT x, page, y FROM t TO TRAIN DNNRegressor WITH validation.column = page«» LABEL y INTO m;

-- site: sqlflow_edl.analysis.rows.splits _split_as_written
-- hint: write {} = group, {} = time or {} = column
-- take: or (validation.split = column)
-- as: , \1
SELECT x, is_new, y FROM t TO TRAIN DNNRegressor WITH validation.column = is_new«» LABEL y INTO m;

-- site: sqlflow_edl.analysis.rows.splits _split_as_written
-- hint: add {} = customer_id, for instance
-- take: add (\S+ = customer_id)
-- as: , \1
SELECT x, page AS customer_id, y FROM t TO TRAIN DNNRegressor WITH validation.split = group«» LABEL y INTO m;

-- site: sqlflow_edl.analysis.rows.splits _split_by_mark
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

-- site: sqlflow_edl.analysis.rows.validation held_out_rows
-- hint: leave VALIDATE out
-- take: leave VALIDATE out
-- run
SELECT x, w FROM t TO TRAIN Transform COLUMN x, w «VALIDATE 0.2» INTO m;

-- site: sqlflow_edl.analysis.forecasts _check_numbers
-- hint: select {} AS {}
-- take: select (.+) AS m
SELECT «m» AS m, y FROM (SELECT 202201 + 100 * (i // 12) + i % 12 AS m, i % 12 AS y FROM range(48) AS rows (i)) TO TRAIN Forecast WITH forecast.time = m, forecast.horizon = 2, train.num_boost_round = 2 LABEL y INTO m;

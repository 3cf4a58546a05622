-- site: edl.sources.postgresql.types unfit
-- hint: write CASE WHEN {} THEN {} END AS {}
-- take: write (.+)
-- on: postgres
SELECT «d», y FROM (SELECT CASE WHEN id = 3 THEN 'infinity'::date ELSE day END AS d, y FROM t) AS q TO TRAIN DNNRegressor LABEL y INTO m;

-- site: edl.sources.postgresql.types unfit
-- hint: write EXTRACT(epoch FROM {}) AS {}
-- take: write (.+)
-- on: postgres
SELECT «c», y FROM (SELECT CASE WHEN id = 3 THEN '24:00'::time ELSE '12:00'::time END AS c, y FROM t) AS q TO TRAIN DNNRegressor COLUMN c LABEL y INTO m;

-- site: edl.sources.mysql.types _unfit
-- hint: write CAST({} AS SIGNED) AS {}
-- take: write (.+)
-- on: mysql
-- first: DROP TABLE IF EXISTS flags; CREATE TABLE flags (b TINYINT(1), y DOUBLE); INSERT INTO flags SELECT CASE WHEN id = 3 THEN 7 ELSE 1 END, y FROM t;
SELECT «b», y FROM flags TO TRAIN DNNRegressor COLUMN b LABEL y INTO m;

-- site: edl.sources.mysql.results MySQLResults._place
-- hint: write it as database.table
-- take: write it as database.table
-- on: mysql
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
-- as: results
SELECT x FROM t TO PREDICT «a.b.c».p USING of_numbers;

-- site: edl.sources.mysql.results MySQLResults._place
-- hint: write one of at most 64 characters
-- take: write one of at most 64
-- on: mysql
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
-- as: results
SELECT x FROM t TO PREDICT «a123456789a123456789a123456789a123456789a123456789a123456789a123456789» USING of_numbers;

-- site: edl.sources.mysql.results MySQLResults._check_appended
-- hint: ALTER TABLE {} ENGINE = {} gives it transactions
-- take: (ALTER TABLE \S+ ENGINE = \w+) gives
-- on: mysql
-- run
-- first: DROP TABLE IF EXISTS unsafe; CREATE TABLE unsafe (x DOUBLE, y DOUBLE) ENGINE = MyISAM; SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
-- as: \1;
«» SELECT x FROM t TO PREDICT unsafe USING of_numbers APPEND;

-- site: edl.sources.postgresql.results PostgreSQLResults._place
-- hint: write it as schema.table
-- take: write it as schema.table
-- on: postgres
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
-- as: public.results
SELECT x FROM t TO PREDICT «a.b.c.d».p USING of_numbers;

-- site: edl.sources.postgresql.results PostgreSQLResults._place
-- hint: write {}.{}, or connect to {}
-- take: write (\S+), or connect
-- on: postgres
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
SELECT x FROM t TO PREDICT «other.public.results».p USING of_numbers;

-- site: edl.sources.postgresql.upload check_names
-- hint: write one of at most {} bytes
-- take: write one of at most
-- on: postgres
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
-- as: results
SELECT x FROM t TO PREDICT «a123456789a123456789a123456789a123456789a123456789a123456789a123456789» USING of_numbers;

-- site: edl.sources.appending columns_for
-- hint: change its type by ALTER TABLE, or cast them: INSERT INTO {} (…) SELECT CAST({} AS …) … FROM PREDICT(…)
-- take: or cast them: (INSERT INTO \S+) \(…\) SELECT (CAST\(y AS) …\) … FROM PREDICT\(…\)
-- run
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers; CREATE OR REPLACE TABLE whole (x DOUBLE, y INTEGER);
-- as: \1 (x, y) SELECT x, \2 INTEGER) FROM PREDICT(of_numbers, (SELECT x FROM t))
«SELECT x FROM t TO PREDICT whole USING of_numbers APPEND»;

-- site: edl.sources.duckdb.hints hint_at_place
-- hint: write straight quotes: {}
-- take: write straight quotes: (.+)
SELECT x FROM t WHERE k = «‘red’»;

-- site: edl.sources.duckdb.hints _number_of
-- hint: {} is a text: write {}
-- take: write (.+)
SELECT «avg(k)» FROM (SELECT id::VARCHAR AS k, x FROM t) AS u;

-- site: edl.sources.duckdb.hints _number_of
-- hint: {} is a boolean: write {}
-- take: write (.+)
SELECT «avg(is_new)» FROM t;

-- site: edl.sources.duckdb.hints _number_of
-- hint: {} is a text: write {}
-- take: write (.+)
SELECT «k + 1» FROM (SELECT id::VARCHAR AS k, x FROM t) AS u;

-- site: edl.sources.duckdb.hints _number_of
-- hint: {} is a text: write {}
-- take: write (.+)
SELECT «2 * k» FROM (SELECT id::VARCHAR AS k, x FROM t) AS u;

-- site: edl.sources.duckdb.hints _comparison
-- hint: {} is a text: write {}, or {} {} '{}'
-- take: write (.+?), or
SELECT x FROM (SELECT id::VARCHAR AS k, x FROM t) AS u WHERE «k > 3»;

-- site: edl.sources.duckdb.hints _comparison
-- hint: {} is a text: write {}, or {} {} '{}'
-- take: , or (.+)
SELECT x FROM (SELECT id::VARCHAR AS k, x FROM t) AS u WHERE «k < 3»;

-- site: edl.sources.duckdb.hints _comparison
-- hint: a date has quotes: write {}
-- take: write (.+)
SELECT x FROM t WHERE «day > 2024-02-01»;

-- site: edl.sources.duckdb.hints quoted_text_hint
-- hint: a text has single quotes: '{}'
-- take: single quotes: (.+)
SELECT x FROM t WHERE k = «"ultramarine"»;

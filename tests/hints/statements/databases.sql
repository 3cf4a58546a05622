-- site: edl.sources.postgresql.types unfit_error
-- hint: write CASE WHEN {} THEN {} END AS {}
-- take: write (.+)
-- on: postgres
SELECT «d», y FROM (SELECT CASE WHEN id = 3 THEN 'infinity'::date ELSE day END AS d, y FROM t) AS q TO TRAIN DNNRegressor COLUMN d LABEL y INTO m;

-- site: edl.sources.postgresql.types unfit_error
-- hint: write EXTRACT(epoch FROM {}) AS {}
-- take: write (.+)
-- on: postgres
SELECT «c», y FROM (SELECT CASE WHEN id = 3 THEN '24:00'::time ELSE '12:00'::time END AS c, y FROM t) AS q TO TRAIN DNNRegressor COLUMN c LABEL y INTO m;

-- site: edl.sources.mysql.types _unfit_error
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

-- site: edl.sources.mysql.types _unfit_error
-- hint: SET time_zone = '+00:00'
-- take: (SET time_zone = '\+00:00')
-- on: mysql
-- run
-- first: DROP TABLE IF EXISTS autumn; SET time_zone = '+00:00'; CREATE TABLE autumn (s TIMESTAMP NULL, y DOUBLE); INSERT INTO autumn SELECT TIMESTAMP'2024-10-26 20:00:00' + INTERVAL 3 * id MINUTE, y FROM t; SELECT s, y FROM autumn TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 COLUMN s LABEL y INTO of_autumn; REPLACE INTO mysql.time_zone VALUES (77, 'N'); REPLACE INTO mysql.time_zone_name VALUES ('Europe/Oslo', 77); REPLACE INTO mysql.time_zone_transition_type VALUES (77, 0, 7200, 1, 'CEST'), (77, 1, 3600, 0, 'CET'); REPLACE INTO mysql.time_zone_transition VALUES (77, 1711846800, 0), (77, 1729990800, 1); SET time_zone = 'Europe/Oslo';
-- as: \1;
«» SELECT s FROM autumn TO PREDICT USING of_autumn WITH predict.report = features;

-- site: edl.sources.sqlite.results _values
-- hint: make it numbers of DOUBLE (float64), or texts
-- take: (float64)
-- on: sqlite
% import pyarrow as pa
% numbers = pa.array([2**63], pa.uint64())
% frame = pa.table({"u": numbers.cast(pa.«uint64»(), safe=False)})
% %sqlflow_connect {URL}
% %sqlflow --persist frame AS kept_too

-- site: edl.sources.postgresql.types unfit_error
-- hint: write {}::double precision AS {}
-- take: write (.+)
-- on: postgres
SELECT «c», y FROM (SELECT (CASE WHEN id = 3 THEN 'NaN'::numeric ELSE 1 END)::numeric(10, 2) AS c, y FROM t) AS q TO TRAIN DNNRegressor COLUMN c LABEL y INTO m;

-- site: edl.sources.mysql.upload declare_type
-- hint: leave it out, or make it a text
-- take: make it a text
-- on: mysql
-- as: "[1, 2]"
% import pyarrow as pa
% frame = pa.table({"x": [1], "u": [«[1, 2]»]})
% %sqlflow_connect {URL}
% %sqlflow --persist frame AS kept

-- site: edl.sources.postgresql.upload declare_type
-- hint: leave it out, or make it a text
-- take: make it a text
-- on: postgres
-- as: "[1, 2]"
% import pyarrow as pa
% frame = pa.table({"x": [1], "u": [«{"a": 1}»]})
% %sqlflow_connect {URL}
% %sqlflow --persist frame AS kept

-- site: edl.sources.sqlite.results _stored_type
-- hint: leave it out, or make it a text
-- take: leave it out
-- on: sqlite
% import pyarrow as pa
% frame = pa.table({"x": [1], «"u": [[1, 2]]»})
% %sqlflow_connect {URL}
% %sqlflow --persist frame AS kept

-- site: edl.sources.mysql.upload _load
-- hint: make the column a text
-- take: make the column a text
-- as: str(
-- on: mysql
% import pyarrow as pa, datetime as dt
% frame = pa.table({"u": [«(»dt.datetime(1900, 1, 1, tzinfo=dt.timezone.utc))]})
% %sqlflow_connect {URL}
% %sqlflow --persist frame AS kept_too

-- site: edl.sources.postgresql.errors 
-- hint: end the open transaction with COMMIT or ROLLBACK
-- take: or (ROLLBACK)
-- on: postgres
-- as: \1;
-- then: division
> BEGIN;
> SELECT 1 / 0;
> «»
> SELECT 1;

-- site: edl.sources.postgresql.errors 
-- hint: ROLLBACK, and BEGIN READ WRITE; or connect to the primary server
-- take: (ROLLBACK), and (BEGIN READ WRITE);
-- as: \1; \2
-- on: postgres
«BEGIN READ ONLY»; CREATE TABLE made_here (x int); ROLLBACK;

-- site: edl.sources.mysql.errors 
-- hint: end the open transaction with COMMIT or ROLLBACK
-- take: with (COMMIT) or
-- on: mysql
-- as: \1;
START TRANSACTION; «»SET TRANSACTION ISOLATION LEVEL READ COMMITTED; COMMIT;

-- site: edl.sources.sqlite.types mixed_column_error
-- hint: write CAST({} AS TEXT) AS {}, or leave it out
-- take: (CAST\(v AS TEXT\) AS v)
-- on: sqlite
-- first: DROP TABLE IF EXISTS mixed; CREATE TABLE mixed (v, y REAL); INSERT INTO mixed SELECT k, y FROM t; INSERT INTO mixed VALUES (x'00', 1.0); SELECT k AS v, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_mixed;
SELECT «v» FROM mixed TO PREDICT USING of_mixed;

-- site: edl.sources.sqlite.types _unfit_error
-- hint: write CAST({} AS TEXT) AS {}, or as another type
-- take: write (CAST\(.+ AS TEXT\) AS \w+)
-- on: sqlite
-- first: DROP TABLE IF EXISTS moments; CREATE TABLE moments (v TIMESTAMP, y REAL); INSERT INTO moments SELECT '2024-01-01 10:00:00', y FROM t; INSERT INTO moments VALUES ('2024-01-01 24:00:00', 1.0);
SELECT «v», y FROM moments TO TRAIN DNNRegressor COLUMN v LABEL y INTO m;

-- site: edl.sources.sqlite.types _unfit_error
-- hint: write CAST({} AS TEXT) AS {}, or as another type
-- take: write (CAST\(.+ AS TEXT\) AS \w+)
-- on: sqlite
-- first: DROP TABLE IF EXISTS moments; CREATE TABLE moments (v DATE, y REAL); INSERT INTO moments SELECT '2024-01-01', y FROM t; INSERT INTO moments VALUES ('-0044-03-15', 1.0);
SELECT «v», y FROM moments TO TRAIN DNNRegressor COLUMN v LABEL y INTO m;

-- site: edl.sources.words Lexicon.one_query
-- hint: write the value in the place of ?
-- take: write the value
-- on: maxcompute
-- as: 3
SELECT x, y FROM t WHERE id > «?» TO TRAIN DNNRegressor LABEL y INTO m;

-- site: edl.sources.sqlite.errors 
-- hint: another process or program has it open for writing; try again, or set PRAGMA busy_timeout
-- take: program has it open for writing
-- as: other.rollback()
% import sqlite3
% other = sqlite3.connect("x.sqlite")
% other.execute("BEGIN EXCLUSIVE")
% «»
% %sqlflow_connect sqlite:x.sqlite
% %sqlflow CREATE TABLE made_here (x)

-- site: edl.sources.mysql.connection check_options
-- hint: write it as mysql://user@host/database
-- take: write it as (mysql://user@)host(/database)
-- source: «mysql://root@localhost»
-- as: \1localhost\2
-- then: cannot
SELECT 1;

-- site: edl.sources.postgresql.connection check_options
-- hint: write it as postgresql://user@host/database
-- take: write it as (postgresql://user@)host(/database)
-- source: «postgresql://root@localhost»
-- as: \1localhost\2
-- then: cannot
SELECT 1;

-- site: edl.sources.mysql.tls context
-- hint: write ssl=true or ssl=false
-- take: write (ssl=true)
-- source: mysql://root@localhost/db?«ssl=yes»
-- then: cannot
SELECT 1;

-- site: edl.sources.mysql.tls context
-- hint: write ssl=true or ssl=false
-- take: or (ssl=false)
-- source: mysql://root@localhost/db?«ssl=yes»
-- then: cannot
SELECT 1;

-- site: edl.sources.mysql.tls context
-- hint: leave one of them out
-- take: leave one of them out
-- source: mysql://root@localhost/db?ssl_ca=/ca.pem«&ssl=false»
-- then: cannot
SELECT 1;

-- site: edl.sources.server ServerSource._check_no_transaction
-- hint: end the open transaction with COMMIT or ROLLBACK
-- take: with (COMMIT) or
-- on: mysql
-- run
-- first: ROLLBACK;
-- as: \1;
START TRANSACTION; «»SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;

-- site: edl.sources.server ServerSource._check_no_transaction
-- hint: end the open transaction with COMMIT or ROLLBACK
-- take: or (ROLLBACK)
-- on: postgres
-- run
-- first: ROLLBACK;
-- as: \1;
BEGIN; «»SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;

-- site: edl.sources.postgresql.types unfit_error
-- hint: a list has one dimension; write {}::text AS {}
-- take: write (.+)
-- on: postgres
SELECT «c», y FROM (SELECT CASE WHEN id = 3 THEN '{{1,2},{3,4}}'::int[] ELSE '{1,2}' END AS c, y FROM t) AS q TO TRAIN DNNRegressor COLUMN c LABEL y INTO m;

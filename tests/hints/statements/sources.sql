-- site: edl.sources.sqlite.types mixed_column_error
-- hint: write {} AS {}, or CAST({} AS TEXT) AS {}
-- take: (CASE .+ END AS v),
-- on: sqlite
-- first: DROP TABLE IF EXISTS mixed; CREATE TABLE mixed (v, y REAL); INSERT INTO mixed SELECT id, y FROM t; INSERT INTO mixed VALUES ('many', 1.0); SELECT id AS v, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_mixed;
SELECT «v» FROM mixed TO PREDICT USING of_mixed;

-- site: edl.sources.mysql.types _unfit_error
-- hint: write {} AS {}
-- take: (CAST\(.+? AS \w+\) AS \w+|NULLIF.+)
-- on: mysql
-- first: DROP TABLE IF EXISTS zeros; SET sql_mode = ''; CREATE TABLE zeros (d DATE, y DOUBLE); INSERT INTO zeros SELECT day, y FROM t; INSERT INTO zeros VALUES ('0000-00-00', 1);
SELECT «d», y FROM zeros TO TRAIN DNNRegressor COLUMN d LABEL y INTO m;

-- site: edl.data.names named_twice
-- hint: give each its own name: … AS {}_2
-- take: … (AS \w+)
SELECT x, x «», y FROM t TO TRAIN DNNRegressor LABEL y INTO m;

-- site: edl.data.files.csv_dialect _find_separator
-- hint: write {}
-- source: «csv:data.csv»
-- file data.csv: a,b;c,d\n1,2;3,4\n
-- take: write (csv:\S+|'csv:[^']+)'?
-- as: csv:data.csv?delim=,
SELECT * FROM data;

-- site: edl.data.url _scheme_of_path
-- hint: write it as duckdb:///path/to/file.duckdb
-- source: «zz»
-- take: write it as duckdb://(/)path/to/file.duckdb
-- as: duckdb:
SELECT 1;

-- site: edl.data.server_url parse_server
-- hint: write it as {}://user@host:port/name
-- source: «mysql://»
-- take: write it as mysql
SELECT 1;

-- site: edl.data.files.csv_dialect settings
-- hint: keep one: ?{}={}
-- source: «csv:data.csv?delim=;&delim=,»
-- file data.csv: a,b\n1,2\n4,5\n
-- take: keep one: (\?delim=,)
-- as: csv:data.csv\1
SELECT * FROM data;

-- site: edl.data.url _location
-- hint: {}:///file is relative to the working directory, {}:////data/file absolute
-- source: «duckdb://data/x.duckdb»
-- take: (duckdb):///file is relative
-- as: \1:
SELECT 1;

-- site: edl.sources.duckdb.results DuckDBResults._place
-- hint: write it as database.schema.table
-- take: write it as database.schema.table
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
SELECT x FROM t TO PREDICT «a.b.c.d.e» USING of_numbers;

-- site: edl.sources.staging ExistingTable.check
-- hint: write the results into another table
-- take: write the results into another
-- first: CREATE OR REPLACE VIEW seen AS SELECT x FROM t; SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
-- as: results
SELECT x FROM t TO PREDICT «seen» USING of_numbers;

-- site: edl.sources.staging ExistingTable.check
-- hint: write the results into another table
-- take: write the results into another table
-- first: CREATE OR REPLACE TABLE mine AS SELECT x FROM t; SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
-- as: results
SELECT x FROM t TO PREDICT «mine» USING of_numbers;

-- site: edl.sources.sqlite.results _row_name
-- hint: rename one in the SELECT
-- take: rename one
-- on: sqlite
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
-- as: oid2
SELECT x, 1 AS rowid, 2 AS _rowid_, 3 AS «oid» FROM t TO PREDICT results2 USING of_numbers;

-- site: edl.data.files.csv_dialect find_dialect
-- hint: write {} if it is of Western Europe, or name another encoding
-- source: «csv:data.csv»
-- file data.csv: a,b\n1,2\n3,\x81\n
-- take: write '?(csv:[^ ']+)'? if
SELECT * FROM data;

-- site: edl.data.files.csv_dialect find_header
-- hint: write {} if the file has no header, {} if these are names
-- source: «csv:data.csv»
-- file data.csv: 1,2\n3,4\n
-- take: write '?(csv:[^ ']+)'? if
SELECT * FROM data;

-- site: edl.data.files.csv_dialect find_header
-- hint: write {} if the file has no header, {} if these are names
-- source: «csv:data.csv»
-- file data.csv: 1,2\n3,4\n
-- take: '(csv:[^ ']+)' if these
SELECT * FROM data;

-- site: edl.data.files.csv_dialect _check_lines_before
-- hint: write {}
-- source: «csv:data.csv»
-- file data.csv: Report of May\na,b\n1,2\n3,4\n
-- take: write '?(csv:[^ ']+)'?
SELECT * FROM data;

-- site: edl.data.files.csv_dialect find_dialect
-- hint: write {} if it has values
-- source: «csv:data.csv»
-- file data.csv: ,\n1,2\n3,4\n
-- take: write '?(csv:[^ ']+)'?
SELECT * FROM data;

-- site: edl.data.url parse
-- hint: write it as {}:///path/to/file.{}
-- source: «parquet:»
-- take: write it as (parquet)://(/)path/to/file.parquet
-- file data.csv: ,\n1,2\n3,4\n
-- as: csv:///data.csv?header=false
SELECT * FROM rows;

-- site: edl.data.url _scheme_of_path
-- hint: if it is text, write {}
-- source: «data.csv2»
-- file data.csv2: a,b\n1,2\n4,5\n
-- take: write (\S+)
SELECT * FROM rows;

-- site: edl.sources.duckdb.results DuckDBResults._place
-- hint: write it as database.schema.table
-- take: write it as database.schema.table
-- as: z.p
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
SELECT x FROM t TO PREDICT «a.b.c.d.e» USING of_numbers;

-- site: edl.sources.duckdb.results DuckDBResults._place
-- hint: write {}.{}, or first ATTACH 'path/to/file.duckdb' AS {}
-- take: write (\w+\.\w+), or first
-- first: CREATE SCHEMA IF NOT EXISTS a; SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
SELECT x FROM t TO PREDICT «other.a.b».c USING of_numbers;

-- site: sqlflow_edl.analysis.schema why_unusable
-- hint: select its seconds: {}
-- take: select its seconds: (.+)
-- as: \1 AS u
SELECT x, y, «u» FROM (SELECT x, y, INTERVAL 3 DAY AS u FROM t) AS q TO TRAIN DNNRegressor COLUMN x, u LABEL y INTO m;

-- site: sqlflow_edl.analysis.schema why_unusable
-- hint: cast it in the SELECT
-- take: cast it in the SELECT
-- as: CAST(u AS VARCHAR) AS u
SELECT x, y, «u» FROM (SELECT x, y, '\xAA'::BLOB AS u FROM t) AS q TO TRAIN DNNRegressor COLUMN x, u LABEL y INTO m;

-- site: sqlflow_edl.analysis.schema why_unusable
-- hint: select {}
-- take: select (NULLIF.+)
-- on: sqlite
-- first: DROP TABLE IF EXISTS mixed; CREATE TABLE mixed (v, y REAL); INSERT INTO mixed SELECT id, y FROM t; INSERT INTO mixed VALUES ('', 1.0);
SELECT «v», y FROM mixed TO TRAIN DNNRegressor COLUMN v LABEL y INTO m;

-- site: sqlflow_edl.analysis.schema why_unusable
-- hint: select {}
-- take: select (CAST\(v AS TEXT\) AS v)
-- on: sqlite
-- first: DROP TABLE IF EXISTS mixed; CREATE TABLE mixed (v, y REAL); INSERT INTO mixed SELECT id, y FROM t; INSERT INTO mixed VALUES (x'00', 1.0);
SELECT «v», y FROM mixed TO TRAIN DNNRegressor COLUMN v LABEL y INTO m;

-- site: sqlflow_edl.analysis.schema why_unusable
-- hint: select {}
-- take: (CASE .+ END AS v),
-- on: sqlite
-- first: DROP TABLE IF EXISTS mixed; CREATE TABLE mixed (v, y REAL); INSERT INTO mixed SELECT id, y FROM t; INSERT INTO mixed VALUES ('many', 1.0);
SELECT «v», y FROM mixed TO TRAIN DNNRegressor COLUMN v LABEL y INTO m;

-- site: edl.sources.sqlite.types mixed_column_error
-- hint: write NULLIF({}, {}) AS {}
-- take: write (NULLIF.+)
-- on: sqlite
-- first: DROP TABLE IF EXISTS mixed; CREATE TABLE mixed (v, y REAL); INSERT INTO mixed SELECT id, y FROM t; INSERT INTO mixed VALUES ('', 1.0); SELECT id AS v, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_mixed;
SELECT «v» FROM mixed TO PREDICT USING of_mixed;

-- site: edl.sources.sqlite.results SQLiteResults._place
-- hint: write it as database.table
-- take: write it as database.table
-- on: sqlite
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
-- as: main.results.p
SELECT x FROM t TO PREDICT «a.b.c.d» USING of_numbers;

-- site: edl.sources.sqlite.results SQLiteResults._place
-- hint: write {}_{}, or first ATTACH 'path/to/file.sqlite' AS {}
-- take: write (a_b), or first
-- on: sqlite
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
SELECT x FROM t TO PREDICT «a.b».c USING of_numbers;

-- site: edl.sources.sqlite.results SQLiteResults._place
-- hint: write {}_{}, or first ATTACH 'path/to/file.sqlite' AS {}
-- take: or first (ATTACH 'path/to/file)(.sqlite' AS a)
-- on: sqlite
-- first: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
-- as: ATTACH ':memory:' AS a; 
«»SELECT x FROM t TO PREDICT a.b.c USING of_numbers;

-- site: edl.sources.appending columns_for
-- hint: {}choose columns by INSERT INTO {} (…) SELECT … FROM PREDICT(…), or add some by ALTER TABLE
-- take: choose columns by (INSERT INTO) kept_columns \(…\) (SELECT) … (FROM PREDICT\()…\)
-- as: \1 kept_columns (x, y) \2 x, y \3of_numbers, (SELECT x FROM t))
-- first: DROP TABLE IF EXISTS kept_columns; CREATE TABLE kept_columns (x DOUBLE, y DOUBLE); SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
«SELECT x, n FROM t TO PREDICT kept_columns USING of_numbers APPEND»;

-- site: edl.sources.appending columns_for
-- hint: select it, SELECT *, … AS {} FROM …, or give it a default by ALTER TABLE
-- take: select it, SELECT \*, (…) AS (k) FROM …
-- as: , 'a' AS \2
-- first: DROP TABLE IF EXISTS needed; CREATE TABLE needed (x DOUBLE, k VARCHAR NOT NULL, y DOUBLE); SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_numbers;
SELECT x« » FROM t TO PREDICT needed USING of_numbers APPEND;

-- site: edl.sources.duckdb.source DuckDBSource.connect
-- hint: write it as sqlite:///{}
-- source: «duckdb:x.sqlite»
-- take: write it as (sqlite:///.+)
-- then: malformed
-- file x.sqlite: SQLite format 3\x00\x10\x00\x01\x01\x00@  \x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00
SELECT 1;

-- site: edl.sources.duckdb.errors 
-- hint: write values in place of ? and $names
-- take: write values in place of
-- as: 3
SELECT x, y FROM t WHERE id > «$1» TO TRAIN DNNRegressor LABEL y INTO m;

-- site: edl.sources.sqlite.errors 
-- hint: write values in place of ? and :names
-- on: sqlite
-- take: write values in place of
-- as: 3
SELECT x, y FROM t WHERE id > «:a» TO TRAIN DNNRegressor LABEL y INTO m;

-- site: edl.sources.duckdb.errors 
-- hint: write -- before a comment: # begins one before statements and in clauses, not in a query
-- take: write (--) before a comment
SELECT x «#» a comment
, y FROM t TO TRAIN DNNRegressor LABEL y INTO m;

-- site: edl.sources.words not_a_query
-- hint: write a SELECT
-- take: write a SELECT
-- as: SELECT 1 AS x, 2 AS y
SELECT x, y FROM t TO TRAIN DNNRegressor LABEL y VALIDATE ON («DROP TABLE zz») INTO m;

-- site: sqlflow_edl.analysis.schema why_unusable
-- hint: select them one by one, such as {}.{} AS {}
-- take: select them one by one, such as (.+)
-- as: \1
-- as: x, a
SELECT x, y, «u» FROM (SELECT x, y, {'a': n, 'b': x} AS u FROM t) AS q TO TRAIN DNNRegressor COLUMN «x, u» LABEL y INTO m;

-- site: edl.data.url _location
-- hint: {}:///file is relative to the working directory, {}:////data/file absolute
-- source: «duckdb://zz»
-- take: relative to
-- as: duckdb:
SELECT 1;

-- site: edl.sources.duckdb.errors 
-- hint: cast the column to DOUBLE or DECIMAL in the SELECT
-- take: cast the column to (DOUBLE)
-- as: CAST(h AS \1)
SELECT «h» * 2 AS twice FROM (SELECT 170141183460469231731687303715884105727::HUGEINT AS h) AS q;

-- site: edl.sources.duckdb.errors 
-- hint: end the open transaction with COMMIT or ROLLBACK
-- take: with (COMMIT) or
-- source: duckdb:
-- as: \1;
BEGIN; «» BEGIN; ROLLBACK;

-- site: edl.sources.sqlite.errors 
-- hint: end the open transaction with COMMIT or ROLLBACK
-- take: or (ROLLBACK)
-- source: sqlite:
-- as: \1;
BEGIN; «» BEGIN; ROLLBACK;

-- site: edl.data.files.csv_dialect _check_lines_before
-- hint: write {} at the end of the line, too
-- take: write '(.)' at the end of the line
-- source: rows.csv
-- file rows.csv: a,b«»\n1,2,\n3,4,\n5,6,\n
SELECT a FROM rows;

-- site: edl.data.files.csv_dialect _check_lines_before
-- hint: write a name for the first column into the line
-- take: write a name for the first column
-- source: rows.csv
-- file rows.csv: «»a,b\n1,2,3\n3,4,4\n5,6,7\n
-- as: id,
SELECT a FROM rows;

-- site: edl.sources.sqlite.errors 
-- hint: the text is not UTF-8; read it with CAST(column AS BLOB), or leave it out
-- take: or leave it out
-- on: sqlite
-- as: x
-- as: x
SELECT «a», y FROM (SELECT CAST(x'ff' AS TEXT) AS a, x, y FROM t) AS q TO TRAIN DNNRegressor COLUMN «a» LABEL y INTO m;

-- site: edl.data.files.sheets _check_titles
-- hint: write {}
-- source: «excel:data.xlsx»
-- file data.xlsx: Report of May,\na,b\n1,2\n3,4\n
-- take: write '?(excel:[^ ']+)'?
SELECT * FROM data;

-- site: edl.data.missing_files missing_file_hint
-- hint: options belong to the source: --source {}, and FROM '{}'
-- take: --source ('.+?'), and FROM ('.+')
-- as: \2
-- as: --source \1
-- file rows.csv: a;b\n1;2\n
$ sqlflow run -e "SELECT a + b FROM «'rows.csv?delim=;'»" «»

-- site: edl.data.missing_files missing_file_hint
-- hint: write straight quotes: '{}'
-- take: write straight quotes: ('.+')
-- file rows.csv: a,b\n1,2\n
$ sqlflow run -e "SELECT a FROM «'‘rows.csv’'»"

-- site: edl.data.url _unknown_error
-- hint: export the rows to a CSV or Parquet file, and give that: --source rows.parquet
-- take: export the rows to a CSV
-- as: rows.csv
-- file rows.csv: a,b\n1,2\n
$ sqlflow run -e "SELECT a FROM rows" --source «oracle://host/db»

-- site: edl.sources.duckdb.hints hint_at_place
-- hint: a variable of a program is {{ name }}, and sqlflow run --var name=… fills it in
-- take: (\{\{) name (\}\})
-- as: {{ least }}
-- file rows.csv: a,b\n1,2\n
$ sqlflow run --var least=0 -e "SELECT a FROM 'rows.csv' WHERE a > «${least}»"

-- site: edl.data.names split_name
-- hint: write it as schema.table
-- take: write it as (schema)(.)table
-- as: main\2kept_here
% import pyarrow as pa
% frame = pa.table({"x": [1]})
% %sqlflow_connect duckdb:
% %sqlflow --persist frame AS «main..kept_here»

-- site: edl.data.names split_name
-- hint: write it as "schema"."table"
-- take: write it as (")schema("\.")table"
-- as: \1main\2kept_here"
% import pyarrow as pa
% frame = pa.table({"x": [1]})
% %sqlflow_connect duckdb:
% %sqlflow --persist frame AS «"main"kept_here»

-- site: edl.data.arrow_types _normal_field
-- hint: cast it in the SELECT, for example CAST({} AS VARCHAR)
-- take: (CAST\(u AS VARCHAR\))
-- as: CREATE TABLE kept AS SELECT \1 AS u FROM frame
% import pyarrow as pa
% frame = pa.table({"u": pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1, 2])])})
% %sqlflow_connect duckdb:
% %sqlflow «--persist frame AS kept»

-- site: edl.data.files.csv _shorten_duckdb_error
-- hint: write {} if it is of Western Europe
-- source: «csv:data.csv?encoding=utf-8»
-- file data.csv: a,b\n{1,a line of the file that is long enough for the part of it that is not looked at before it is read to its end\n}*60000{2,\xe9\n}*1
-- take: write '?(csv:[^ ']+)'? if
SELECT count(b) FROM data;

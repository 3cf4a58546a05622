-- site: edl.sources.sqlite.types mixed
-- hint: write CAST({} AS REAL) AS {}, or AS TEXT
-- take: write (CAST\(v AS REAL\) AS v)
-- on: sqlite
-- first: DROP TABLE IF EXISTS mixed; CREATE TABLE mixed (v, y REAL); INSERT INTO mixed SELECT id, y FROM t; INSERT INTO mixed VALUES ('many', 1.0);
SELECT «v», y FROM mixed TO TRAIN DNNRegressor LABEL y INTO m;

-- site: edl.sources.mysql.types _unfit
-- hint: write {} AS {}
-- take: (CAST\(.+? AS \w+\) AS \w+|NULLIF.+)
-- on: mysql
-- first: DROP TABLE IF EXISTS zeros; SET sql_mode = ''; CREATE TABLE zeros (d DATE, y DOUBLE); INSERT INTO zeros SELECT day, y FROM t; INSERT INTO zeros VALUES ('0000-00-00', 1);
SELECT «d», y FROM zeros TO TRAIN DNNRegressor LABEL y INTO m;

-- site: edl.data.names named_twice
-- hint: give each its own name: … AS {}_2
-- take: … (AS \w+)
SELECT x, x «», y FROM t TO TRAIN DNNRegressor LABEL y INTO m;

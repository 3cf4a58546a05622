-- site: edl.sources.sqlite.types mixed
-- hint: write CAST({} AS REAL) AS {}, or AS TEXT
-- take: (CAST\(v AS REAL\) AS v)
-- on: sqlite
-- first: DROP TABLE IF EXISTS mixed; CREATE TABLE mixed (v, y REAL); INSERT INTO mixed SELECT id, y FROM t; INSERT INTO mixed VALUES ('many', 1.0); SELECT id AS v, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO of_mixed;
SELECT «v» FROM mixed TO PREDICT USING of_mixed;

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

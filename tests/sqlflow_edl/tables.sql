-- The tables that the compiler's tests share.

CREATE TABLE people AS
SELECT
    20 + i % 50 AS age,
    150 + (i % 37) * 1.5::DOUBLE AS height,
    (i % 101) - 50 AS balance,
    ['oslo', 'rome', 'lima', 'bonn'][1 + i % 4] AS city,
    ['red', 'blue', 'green'][1 + i % 3] AS team,
    i % 2 = 0 AS member,
    'flat ' || i AS flat,
    1000.0::DOUBLE * (20 + i % 50) + i AS income
FROM range(1200) AS numbers(i);

CREATE TABLE dated AS
SELECT
    i AS age,
    DATE '2000-01-01' + i::INT AS born,
    (DATE '2000-06-15' + INTERVAL (i % 2) YEAR)::DATE AS joined,
    TIMESTAMPTZ '2000-01-01 00:30:00+00' + INTERVAL (i) HOUR AS seen,
    TIME '00:00:00' + INTERVAL (i * 20) MINUTE AS woke,
    (i / 4)::DECIMAL(9, 2) AS price,
    i * 2.0::DOUBLE AS income
FROM range(50) AS numbers(i);

CREATE TABLE packed AS
SELECT
    i AS age,
    concat_ws(',', i, i * 2, 7) AS point,
    concat_ws(';', i / 2, i % 5) AS halves,
    [i, i + 1]::DOUBLE[] AS pair,
    CASE WHEN i = 31 THEN '1,2' ELSE '1,2,3' END AS uneven,
    CASE WHEN i = 31 THEN '1,two' ELSE '1,2' END AS wrong,
    (i / 2)::VARCHAR AS written,
    concat_ws(',', i % 3, i % 20) AS ids,
    CASE WHEN i > 0 THEN concat((i % 20)::INT, ':0.5 3:', i / 2) END AS pairs,
    concat_ws('|', ['red', 'blue'][1 + i % 2], 'red', 'w' || i) AS words,
    [i % 4, 19] AS tags,
    ['t' || i % 3] AS names,
    i * 2.0::DOUBLE AS income
FROM range(50) AS numbers(i);

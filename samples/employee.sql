-- What does somebody earn? The statement of the introduction, over a made-up company of 6,400.
-- The table is a function of the row number, so that everybody has the same one.

CREATE OR REPLACE TABLE employee AS
WITH people AS (
    SELECT
        i AS id,
        22 + hash(i, 'age') % 44 AS age,
        ['engineering', 'finance', 'sales', 'support'][1 + (hash(i, 'department') % 4)::INT] AS department,
        'street ' || hash(i, 'street') % 1000 AS address,
        (hash(i, 'noise') % 10001)::DOUBLE / 10000 - 0.5 AS noise
    FROM range(6400) AS numbers(i)
)
SELECT
    id, age, address, department,
    round(
        20000 + 900 * age
        + CASE department WHEN 'engineering' THEN 15000 WHEN 'finance' THEN 20000 WHEN 'sales' THEN 5000 ELSE 0 END
        + 8000 * (hash(address) % 1000)::DOUBLE / 1000
        + 6000 * noise
    ) AS income
FROM people;

SELECT age, address, department, income FROM employee
TRAIN DNNRegressor
COLUMN age, vocabularize(department), bucketize(address, 1000),
TARGET income,
WITH hidden_layers=[100, 150, 50],
     dist_strategy=mirrored, gpus=8
INTO my_first_model;

-- The short form: the compiler chooses the model and the features.
SELECT * EXCLUDE (id) FROM employee TARGET income INTO my_second_model;

SELECT * FROM employee WHERE id < 5 TO PREDICT USING my_first_model;

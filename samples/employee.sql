-- What does somebody earn? The statement of the introduction, in SQLFlow's older dialect without TO.

SELECT age, address, department, income FROM employee
TRAIN DNNRegressor
COLUMN age, vocabularize(department), bucketize(address, 1000),
TARGET income,
WITH hidden_layers=[100, 150, 50],
     dist_strategy=mirrored, gpus=8
INTO my_first_model;

-- The short form: a search of 20 seconds for the best models, and the mean of them.
SELECT age, address, department, income FROM employee
TARGET income WITH train.time_limit = 20 INTO my_second_model;

-- Without a target the predictions are the result. 'basement' is a department that nobody has seen.
SELECT 30 AS age, 'street 7' AS address, 'sales' AS department
UNION ALL SELECT 60, 'street 7', 'engineering'
UNION ALL SELECT NULL, NULL, 'basement'
TO PREDICT USING my_first_model;

SELECT age, address, department, income FROM employee WHERE id % 10 > 0
TO TRAIN DNNRegressor
COLUMN age, VOCABULARIZE(department), BUCKETIZE(address, 1000)
LABEL income
INTO salaries;

SELECT * FROM employee WHERE id % 10 = 0
TO EVALUATE salaries WITH validation.metrics = "rmse, r2";

SELECT 30 AS age, 'street 7' AS address, 'sales' AS department
UNION ALL SELECT 60, 'street 7', 'engineering'
TO PREDICT USING salaries;

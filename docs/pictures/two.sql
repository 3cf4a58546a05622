CREATE TABLE large AS SELECT * FROM employee WHERE income > 90000;
SELECT count(*) FROM small;
SELECT count(*) FROM large;

-- Programs of your own over the rows of a query, in the folder runnables.
--
--     sqlflow samples --source duckdb:///demo.duckdb      makes the tables
--     sqlflow run samples/runnables.sql --source duckdb:///demo.duckdb
--
-- Run it in the folder above this one, or name that in SQLFLOW_MODEL_PATH.

-- Which columns of the flights are distributed differently in the second half of the year?
SELECT dep_time, dep_delay, air_time, distance, CASE WHEN month > 6 THEN 'second' ELSE 'first' END AS half
FROM flights
TO RUN samples/runnables/psi.py
CMD "--group=half", "--baseline=first"
INTO drift_of_flights;

SELECT * FROM drift_of_flights ORDER BY psi DESC;

-- How many wines are in each tenth of the range of a column?
SELECT * FROM wine
TO RUN samples/runnables/binning.py
CMD "--columns=alcohol,proline", "--bins=10"
INTO bins_of_wine;

SELECT * FROM bins_of_wine WHERE row_count > 0 ORDER BY 1, bin;

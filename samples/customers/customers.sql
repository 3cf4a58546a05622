-- Which customers will leave? From a CSV file to a model, a verdict, and the reasons for one customer.

SELECT * FROM customers
LABEL churned
WITH auto.trials = 1
INTO too_good;

SELECT * EXCLUDE (cancellation_date, cancel_reason, last_login) FROM customers WHERE customer_id < 'C-115000'
LABEL churned
WITH auto.trials = 6, auto.models = trees
INTO churn;

SELECT * FROM customers WHERE customer_id >= 'C-115000' TO EVALUATE churn;

SELECT customer_id, churned, churned_prob_true
FROM PREDICT(churn, (SELECT * FROM customers WHERE customer_id >= 'C-115000'))
ORDER BY churned_prob_true DESC, customer_id
LIMIT 5;

SELECT * FROM customers TO EXPLAIN churn;

SELECT * FROM customers WHERE customer_id = 'C-116414' TO EXPLAIN churn;

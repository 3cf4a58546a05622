-- One payment of a hundred is a fraud. A model that finds none is right 99 times of 100: what to measure and to do instead.

CREATE OR REPLACE TABLE payments AS
SELECT id, amount, hour, country, new_card, hash('fraud' || id) % 10000 < risk AS fraud
FROM (SELECT *, CASE WHEN country = 'XK' AND hour < 4 THEN 2500 WHEN new_card AND amount > 900 THEN 1500 ELSE 4 END AS risk
      FROM (SELECT id, 5 + hash('amount' || id) % 1000 AS amount, hash('hour' || id) % 24 AS hour, hash('card' || id) % 12 = 0 AS new_card,
                   ['DE', 'FR', 'US', 'CN', 'XK'][1 + (hash('country' || id) % 5)::INT] AS country
            FROM range(20000) AS ids(id)));

SELECT amount, hour, country, new_card, fraud FROM payments WHERE id % 4 > 0
TO TRAIN BoostedTreesClassifier WITH validation.metrics = "accuracy, average_precision, auc"
LABEL fraud
INTO frauds;

SELECT * FROM payments WHERE id % 4 = 0 TO EVALUATE frauds WITH evaluate.report = confusion_matrix;

SELECT amount, hour, country, new_card, fraud FROM payments WHERE id % 4 > 0
TO TRAIN BoostedTreesClassifier
WITH validation.metrics = "accuracy, average_precision, auc", train.class_weights = auto
LABEL fraud
INTO frauds;

SELECT * FROM payments WHERE id % 4 = 0 TO EVALUATE frauds WITH evaluate.report = confusion_matrix;

SELECT * FROM payments WHERE id % 4 = 0
TO EVALUATE frauds@1 WITH evaluate.report = confusion_matrix, evaluate.threshold = 0.05;

SELECT id, amount, hour, country, new_card, fraud FROM payments WHERE id % 4 = 0
TO PREDICT checked.guess USING frauds WITH predict.probabilities = TRUE;

SELECT count(*) AS looked_at, sum(fraud::INT) AS frauds, (SELECT sum(fraud::INT) FROM checked) AS all_frauds
FROM (SELECT * FROM checked ORDER BY guess_prob_true DESC, id LIMIT 100);

-- How far does diabetes progress in a year, and why? A regression, in two ways, and what it goes by.

SELECT age, sex, bmi, bp, s1, s2, s3, s4, s5, s6, progression
FROM diabetes WHERE id % 4 > 0
TO TRAIN LinearRegressor
WITH optimizer = adam, optimizer.learning_rate = 0.02
LABEL progression
INTO progression_linear;

SELECT age, sex, bmi, bp, s1, s2, s3, s4, s5, s6, progression
FROM diabetes WHERE id % 4 > 0
TO TRAIN DNNRegressor
WITH model.hidden_units = [16], loss = huber, loss.delta = 1.5, train.epoch = 40
COLUMN STANDARDIZE(bmi), NORMALIZE(bp), BUCKETIZE(age, 5), INDICATOR(BUCKET(s5, [-0.05, 0.0, 0.05]))
LABEL progression
INTO progression_network;

SELECT * FROM diabetes WHERE id % 4 = 0
TO EVALUATE progression_linear
WITH validation.metrics = "rmse, mae, r2";

SELECT * FROM diabetes WHERE id % 4 = 0
TO EVALUATE progression_network
WITH validation.metrics = "rmse, mae, r2";

-- What a patient's columns add to, or take from, what is usual: the base and all `…_shap` add up to the prediction.
SELECT * FROM diabetes WHERE id % 4 = 0
TO EXPLAIN progression_network
INTO progression_reasons;

SELECT id, round(progression) AS predicted, round(progression_base) AS usual, round(bmi_shap) AS by_bmi,
       round(s5_shap) AS by_s5, round(age_shap) AS by_age, round(bp_shap) AS by_bp
FROM progression_reasons
ORDER BY progression DESC
LIMIT 5;

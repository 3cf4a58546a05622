-- Several classes; the names of the model and of a column are markup.
SELECT amount AS "<script>alert(1)</script>", city, day, is_new, kind FROM sales
TO TRAIN lightgbm.gbdt WITH train.num_boost_round = 5, validation.metrics = "accuracy" LABEL kind INTO "<b>kinds";

-- Two classes, in two versions.
SELECT amount, city, cost > 20 AS dear FROM sales
TO TRAIN lightgbm.gbdt WITH train.num_boost_round = 5, validation.metrics = "auc, accuracy" VALIDATE 0.3 LABEL dear INTO dear;

SELECT amount, city, cost > 20 AS dear FROM sales
TO TRAIN lightgbm.gbdt WITH train.num_boost_round = 9, validation.metrics = "auc, accuracy" VALIDATE 0.3 LABEL dear INTO dear;

-- A number.
SELECT amount, city, is_new, cost FROM sales
TO TRAIN lightgbm.gbdt WITH train.num_boost_round = 5, objective = regression, validation.metrics = "mae, rmse" VALIDATE 0.3
LABEL cost INTO costs;

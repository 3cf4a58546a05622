-- Models that the pictures of commands show; no picture shows these statements.
SELECT mean_radius, mean_texture, mean_smoothness, mean_concavity, mean_symmetry, diagnosis FROM breast_cancer WHERE id % 5 > 0
TO TRAIN BoostedTreesClassifier WITH validation.metrics = "accuracy, auc" LABEL diagnosis INTO tumours;

SELECT mean_radius, mean_texture, mean_smoothness, mean_concavity, mean_symmetry, diagnosis FROM breast_cancer WHERE id % 5 > 0
TO TRAIN BoostedTreesClassifier WITH validation.metrics = "accuracy, auc", model.max_depth = 3 LABEL diagnosis INTO tumours;

SET MODEL tumours TAG production 1;

SELECT age, department, income FROM employee
TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 20 LABEL income INTO incomes;

SELECT age, department, income FROM employee
TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2, model.num_leaves = 4 LABEL income INTO bonus;

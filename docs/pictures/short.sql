SELECT age, department, income FROM employee
TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 4, validation.metrics = rmse LABEL income INTO short;

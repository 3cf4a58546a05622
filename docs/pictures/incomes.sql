SELECT age, department, income FROM employee
TO TRAIN BoostedTreesRegressor LABEL income INTO incomes;

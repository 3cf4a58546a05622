SELECT age, address, department, income FROM employee
TO TRAIN DNNRegressor WITH model.framework = torch, train.epoch = 3000, train.num_workers = 2
LABEL income INTO slow;

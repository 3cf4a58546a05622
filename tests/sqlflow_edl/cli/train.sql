SELECT sin(i) AS x, 3 * sin(i) + cos(i) AS y FROM range(20000) numbers(i)
TO TRAIN DNNRegressor
WITH model.framework = torch, model.hidden_units = [8], train.epoch = 6, train.batch_size = 16, train.checkpoint_steps = 100
LABEL y INTO m;

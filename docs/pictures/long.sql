SELECT * FROM iris to train DNNClassifier with model.hidden_units=[10,20], train.epoch=20, optimizer.learning_rate=0.05
column sepal_length, bucketize(petal_length, num_buckets=4) label species into flowers;

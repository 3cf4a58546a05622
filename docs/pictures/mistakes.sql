SELECT * FROM iris
TO TRAIN DNNClasifier
WITH train.epochs = 10, model.hidden_units = "many"
COLUMN BUCKETISE(petal_length, 4)
LABEL species
INTO flowers;

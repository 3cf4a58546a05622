-- Who clicks on what? Ids of a click log, with their vectors on parameter servers.

SELECT c0, c1, c2, c3, c4, c5, c6, c7, label FROM click_log WHERE id % 10 > 0
TO TRAIN LinearClassifier
WITH model.framework = torch, train.epoch = 2, train.batch_size = 64, validation.metrics = auc
COLUMN CATEGORY_ID(c0, 50), CATEGORY_ID(c1, 50), CATEGORY_ID(c2, 50), CATEGORY_ID(c3, 50),
       CATEGORY_ID(c4, 50), CATEGORY_ID(c5, 50), CATEGORY_ID(c6, 50), CATEGORY_ID(c7, 50)
LABEL label
INTO clicks_linear;

SELECT c0, c1, c2, c3, c4, c5, c6, c7, label FROM click_log WHERE id % 10 > 0
TO TRAIN DeepFMClassifier
WITH model.framework = torch, model.embedding_dim = 8, train.epoch = 4, train.batch_size = 64,
     train.num_workers = 2, train.num_ps = 2, validation.metrics = auc
COLUMN CATEGORY_ID(c0, 50), CATEGORY_ID(c1, 50), CATEGORY_ID(c2, 50), CATEGORY_ID(c3, 50),
       CATEGORY_ID(c4, 50), CATEGORY_ID(c5, 50), CATEGORY_ID(c6, 50), CATEGORY_ID(c7, 50)
LABEL label
INTO clicks;

SELECT * FROM click_log WHERE id % 10 = 0 TO EVALUATE clicks_linear WITH validation.metrics = auc;

SELECT * FROM click_log WHERE id % 10 = 0 TO EVALUATE clicks WITH validation.metrics = auc;

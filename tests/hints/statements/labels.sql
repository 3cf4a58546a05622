-- site: sqlflow_edl.analysis.labels choose
-- hint: add WHERE {} to the SELECT, or leave them out by WITH train.on_bad_row = skip
-- take: (WHERE isfinite\(odd\)) to the SELECT
SELECT x, odd FROM t «» TO TRAIN DNNRegressor LABEL odd INTO m;

-- site: sqlflow_edl.analysis.labels choose
-- hint: add WHERE {} to the SELECT, or leave them out by WITH train.on_bad_row = skip
-- take: add (WHERE .+?) to the SELECT
-- on: sqlite
SELECT x, odd FROM t «» TO TRAIN DNNRegressor LABEL odd INTO m;

-- site: sqlflow_edl.analysis.labels choose
-- hint: add WHERE {} to the SELECT, or leave them out by WITH train.on_bad_row = skip
-- take: add (WHERE .+?) to the SELECT
-- on: mysql
SELECT x, gap FROM t «» TO TRAIN DNNRegressor LABEL gap INTO m;

-- site: sqlflow_edl.analysis.labels choose
-- hint: add WHERE {} to the SELECT, or leave them out by WITH train.on_bad_row = skip
-- take: add (WHERE .+?) to the SELECT
-- on: postgres
SELECT x, odd FROM t «» TO TRAIN DNNRegressor LABEL odd INTO m;

-- site: sqlflow_edl.analysis.labels choose
-- hint: add WHERE {} to the SELECT, or leave them out by WITH train.on_bad_row = skip
-- take: (WITH train.on_bad_row = skip)
SELECT x, gap FROM t TO TRAIN DNNRegressor «» LABEL gap INTO m;

-- site: sqlflow_edl.analysis.labels choose
-- hint: add WHERE {} to the SELECT, or leave them out by WITH train.on_bad_row = skip
-- take: (WHERE .+?) to the SELECT
SELECT x, odd FROM t «» TO TRAIN DNNRegressor LABEL odd INTO m;

-- site: sqlflow_edl.analysis.labels choose
-- hint: add WHERE {} to the SELECT, or leave them out by WITH train.on_bad_row = skip
-- take: (WITH train.on_bad_row = skip)
SELECT x, odd FROM t TO TRAIN DNNRegressor «» LABEL odd INTO m;

-- site: sqlflow_edl.analysis.labels refuse_labels
-- hint: leave LABEL out, and out of the SELECT what is no feature; a DNNClassifier predicts a label
-- looks: no
-- take: leave LABEL out
SELECT x, n FROM t TO TRAIN KMeans WITH model.n_clusters = 3 «LABEL n» INTO m;

-- site: sqlflow_edl.analysis.labels _classes
-- hint: leave it out: classes are counted
-- take: leave it out
SELECT x, n FROM t TO TRAIN DNNClassifier «WITH model.n_classes = 3» LABEL n INTO m;

-- site: sqlflow_edl.analysis.labels _classes
-- hint: train a {}
-- take: train a (\w+)
SELECT x, y FROM t TO TRAIN «DNNClassifier» LABEL y INTO m;

-- site: sqlflow_edl.analysis.labels _classes
-- hint: leave it out: classes are counted
-- take: leave it out: classes are counted
SELECT x, n FROM t TO TRAIN DNNClassifier WITH train.epochs = 2«, model.n_classes = 2» LABEL n INTO m;

-- site: sqlflow_edl.analysis.labels refuse_labels
-- hint: leave LABEL out, and out of the SELECT what is no feature; a DNNClassifier predicts a label
-- looks: no
-- take: leave LABEL out
SELECT x FROM t TO TRAIN IsolationForest «LABEL x» INTO m;

-- site: sqlflow_edl.analysis.labels label_spans
-- hint: leave one out
-- take: leave a label out|leave one out
SELECT x, y FROM t TO TRAIN DNNRegressor LABEL y«, y» INTO m;

-- site: sqlflow_edl.analysis.labels check_type
-- hint: select a number instead, such as the seconds: {}
-- take: the seconds: (.+)
-- as: \1 AS moment
SELECT x, «moment» FROM t TO TRAIN DNNRegressor LABEL moment INTO m;

-- site: sqlflow_edl.analysis.labels refuse_labels
-- hint: leave LABEL out, and out of the SELECT what is no feature; a DNNClassifier predicts a label
-- looks: no
-- take: no feature; a (DNNClassifier) predicts
SELECT x, n FROM t TO TRAIN «KMeans» LABEL n INTO m;

-- site: sqlflow_edl.analysis.labels _constant_label_error
-- hint: select {} - {} AS {}
-- take: select (.+)
SELECT x, «y» FROM (SELECT x, 9000000000000000000 + id AS y FROM t) AS q TO TRAIN DNNRegressor LABEL y INTO m;

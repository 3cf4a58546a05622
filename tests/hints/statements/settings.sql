-- site: sqlflow_edl.analysis.settings.running problems
-- hint: leave out train.checkpoint_copies or train.durable_updates
-- take: leave out train.checkpoint_copies
SELECT x, y FROM t TO TRAIN DNNRegressor WITH model.framework = torch, train.strategy = async, train.num_workers = 2, train.num_ps = 2, train.durable_updates = process«, train.checkpoint_copies = neighbours» LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.running unused_limits
-- hint: leave it out; an embedding of more than {} numbers, ids times width, has one
-- take: leave it out; an embedding
SELECT x, y FROM t TO TRAIN DNNRegressor WITH model.framework = torch«, train.embedding_min_count = 3» LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.training_length _held_out_rows_needed
-- hint: write {} = 0.2 to validate on a fifth of the rows
-- take: write (validation.fraction = 0\.2)
SELECT x, y FROM t TO TRAIN DNNRegressor WITH «validation.fraction = 0», train.early_stopping = 2 LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.training_length _held_out_rows_needed
-- hint: write VALIDATE 0.2 to validate on a fifth of the rows
-- take: write (VALIDATE 0\.2)
SELECT x, y FROM t TO TRAIN DNNRegressor WITH train.early_stopping = 2 «VALIDATE 0» LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.dictionary Dictionary.resolve
-- hint: keep one of them
-- take: keep one of them
SELECT x, y FROM t TO TRAIN DNNRegressor WITH epochs = 2«, train.epochs = 3» LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.trees check
-- hint: leave it out, or write model.framework = {}
-- take: leave it out
SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH model.framework = lightgbm«, model.tree_method = hist» LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.trees check
-- hint: leave it out, or write model.framework = {}
-- take: write (model.framework = \w+)
SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH model.tree_method = hist, «model.framework = lightgbm» LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.optimizer check_clipping
-- hint: keep one of them
-- take: keep one of them
SELECT x, y FROM t TO TRAIN LinearRegressor WITH model.framework = torch, «optimizer.clipnorm = 1, »optimizer.clipvalue = 2 LABEL y INTO m;

-- site: sqlflow_edl.analysis.settings.running _of_trees
-- hint: leave out train.num_ps and train.strategy: several workers add up their histograms
-- take: leave out train.num_ps and train.strategy
SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_workers = 2«, train.num_ps = 2» LABEL y INTO m;

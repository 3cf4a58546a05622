-- site: edl.cli.arguments check_flags
-- hint: see --help
-- take: see (--help)
$ edl train «--zzqx»

-- site: edl.cli.arguments check_use
-- hint: --program DIR is a program folder, --model_def package.module.custom_model a hand-written module
-- take: (--program) DIR is
-- as: \1 my_program
-- then: my_program
$ edl train «»

-- site: edl.cli.arguments check_use
-- hint: --program DIR is a program folder, --model_def package.module.custom_model a hand-written module
-- take: (--model_def) package.module.custom_model
-- as: \1 my_zoo.model.custom_model --training_data rows.csv
-- file rows.csv: a,b\n1,2\n
-- then: my_zoo
$ edl train «»

-- site: edl.cli.arguments check_use
-- hint: edit job.json or model.py of the program, or name a module with --model_def
-- take: edit job.json or model.py of the program
-- then: my_program
$ edl train --program my_program «--loss my_loss»

-- site: edl.cli.arguments check_resume
-- hint: with --resume you may give {}
-- take: with --resume you may give (--output)
-- as: \1 m.zip
-- then: my_job
$ edl train --resume my_job «--num_workers 2»

-- site: sqlflow_edl.session.advice.models _say_none_kept
-- hint: a schema file has no models: --model-store DIR names the folder that has it; sqlflow copy {} --to DIR writes it there from its --source
-- take: (--model-store) DIR .* (sqlflow copy \w+) --to DIR
-- as: \2 --source duckdb:a.duckdb --to ./models
-- as: \1 models
-- file my.sql: CREATE TABLE t (x DOUBLE, y DOUBLE); INSERT INTO t VALUES (1, 2), (2, 3), (3, 5);
-- file p.sql: SELECT x, y FROM t TO TRAIN BoostedTreesRegressor USING m WITH train.num_boost_round = 2 LABEL y INTO m2;
$ sqlflow run --source duckdb:a.duckdb --create -e "CREATE TABLE t AS SELECT i AS x, i + random() AS y FROM range(100) AS r(i)" -e "SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO m"
$ «sqlflow run --source duckdb: -e "SELECT 1 AS x"»
$ sqlflow compile -o out --schema my.sql p.sql «--source duckdb:a.duckdb»

-- site: sqlflow_edl.cli.program.record load
-- hint: sqlflow run FILE
-- take: (sqlflow run) FILE
-- file my.sql: SELECT 1 AS x\n
-- as: \1 my.sql --source duckdb:
$ «sqlflow retry»

-- site: sqlflow_edl.cli.program.entries _positions
-- hint: --dry-run numbers them
-- take: (--dry-run) numbers them
$ sqlflow run --source duckdb: -e "SELECT 1 AS x" «--select zz»

-- site: sqlflow_edl.console.commands _columns
-- hint: /d TABLE; /dt lists them
-- take: (/d) TABLE; 
-- as: \1 flowers
> CREATE TABLE flowers AS SELECT 1 AS x;
> «/d»

-- site: sqlflow_edl.console.commands _columns
-- hint: /d TABLE; /dt lists them
-- take: (/dt) lists them
> CREATE TABLE flowers AS SELECT 1 AS x;
> «/d»

-- site: sqlflow_edl.console.commands _model
-- hint: /model NAME; /models lists them
-- take: (/models) lists them
> «/model»

-- site: sqlflow_edl.console.commands _job
-- hint: /job ID; /jobs lists them
-- take: (/jobs) lists them
> «/job»

-- site: sqlflow_edl.console.commands _watch
-- hint: /watch 2 SELECT count(*) FROM t
-- take: (/watch) 2 SELECT
-- as: SELECT 1;
> «/watch»

-- site: sqlflow_edl.console.commands _save_favourite
-- hint: /fs top SELECT * FROM t LIMIT $1; without a statement, the last one is taken
-- take: ^(/fs top .+? FROM t)
> «/fs»

-- site: sqlflow_edl.console.commands _save_favourite
-- hint: /fs top SELECT * FROM t LIMIT $1; without a statement, the last one is taken
-- take: ^(/fs top .+?); without
> CREATE TABLE t AS SELECT 1 AS x;
> «/fs»

-- site: sqlflow_edl.console.favourites find
-- hint: /fs NAME STATEMENT makes one
-- take: (/fs) NAME STATEMENT makes one
-- as: \1 zzq SELECT 1
> «»
> /f zzq

-- site: sqlflow_edl.console.favourites find
-- hint: /fs NAME STATEMENT makes one
-- take: (/fs) NAME STATEMENT makes one
-- as: \1 zzq SELECT 1
> «SELECT 1;»
> /f zzq

-- site: sqlflow_edl.console.favourites arguments
-- hint: write it's as 'it''s'
-- take: as ('it''s')
> /fs q SELECT $1 AS x
> /f q «it's»

-- site: sqlflow_edl.console.commands _drop_favourite
-- hint: /fd NAME; /f lists them
-- take: (/f) lists them
> «/fd»

-- site: sqlflow_edl.console.commands _use
-- hint: /use duckdb:///other.duckdb
-- take: (/use duckdb:)///other.duckdb
> «/use»

-- site: sqlflow_edl.console.commands _system
-- hint: /system ls -l
-- take: (/system ls -l)
> «/system»

-- site: sqlflow_edl.console.commands find_command
-- hint: /help lists them
-- take: (/help) lists them
> «/zzqx»

-- site: sqlflow_edl.extensions.notebook.connections Connections.session
-- hint: %sqlflow_connect duckdb:///demo.duckdb
-- take: (%sqlflow_connect duckdb:)///demo.duckdb
-- as: \1
% «»
% %sqlflow SELECT 1

-- site: sqlflow_edl.extensions.notebook.connections Connections.session
-- hint: %sqlflow_connect URL --alias {}
-- take: (%sqlflow_connect) URL (--alias shop)
-- as: \1 duckdb: \2
% «%sqlflow_connect duckdb:»
% %sqlflow --source shop SELECT 1

-- site: sqlflow_edl.extensions.notebook.magics SQLFlowMagics.sqlflow_connect
-- hint: %sqlflow_connect URL --alias NAME
-- take: (%sqlflow_connect) URL (--alias) NAME
-- as: \2 shop
% %sqlflow_connect duckdb: «shop»

-- site: sqlflow_edl.extensions.notebook.magics SQLFlowMagics._only_connect
-- hint: %sqlflow SELECT …, or a cell below %%sqlflow
-- take: (%sqlflow SELECT) …
-- as: \1 1
% %sqlflow_connect duckdb:
% «%sqlflow»

-- site: sqlflow_edl.extensions.notebook.frames target
-- hint: --persist {} AS table
-- take: unexpected|(--persist frame AS table)
-- as: \1
% import pandas as pd; frame = pd.DataFrame({'x': [1]})
% %sqlflow_connect duckdb:
% %sqlflow «--persist frame zz»

-- site: sqlflow_edl.extensions.notebook.magics SQLFlowMagics._connect_session
-- hint: %sqlflow_connect duckdb:///demo.duckdb
-- take: (%sqlflow_connect duckdb:)///demo.duckdb
% «%sqlflow_connect»

-- site: sqlflow_edl.extensions.notebook.arguments split_options
-- hint: {} {}
-- take: (--alias) \S+
-- as: \1 a
% %sqlflow_connect duckdb: «--alias»

-- site: sqlflow_edl.syntax.error_messages _no_variable
-- hint: sqlflow run --var {}=… fills it in
-- take: sqlflow run (--var zz=)…
-- as: \g<1>1
$ sqlflow run --source duckdb: -e "SELECT {{ zz }} AS x" «»

-- site: sqlflow_edl.cli.program.schema_file create_tables
-- hint: leave this statement out
-- take: leave this statement out
-- file my.sql: CREATE TABLE t (x DOUBLE, b BOOLEAN); «DROP TABLE zz;»
-- file p.sql: SELECT x, b FROM t TO TRAIN DNNClassifier WITH train.epochs = 2, train.batch_size = 10, optimizer.schedule = constant, model.hidden_units = [4], train.early_stopping = 0 COLUMN BUCKET(x, [1, 2]) LABEL b INTO m;
$ sqlflow compile -o out --schema my.sql p.sql

-- site: sqlflow_edl.cli.program.schema_file open_session
-- hint: use the database itself by --source, or write the programs in {}
-- take: write the programs in (duckdb)
-- as: --source duckdb:
-- file my.sql: CREATE TABLE t (x DOUBLE, b BOOLEAN);
-- file p.sql: SELECT x, b FROM t TO TRAIN DNNClassifier WITH train.epochs = 2, train.batch_size = 10, optimizer.schedule = constant, model.hidden_units = [4], train.early_stopping = 0 COLUMN BUCKET(x, [1, 2]) LABEL b INTO m;
$ sqlflow compile -o out --schema my.sql p.sql «--source mysql://u@h/d»

-- site: sqlflow_edl.analysis.without_rows _suggest_function
-- hint: write COLUMN BUCKET({}, [1, 10, 100]){}
-- take: write COLUMN (BUCKET\(x, \[1, 10, 100\]\))
-- file my.sql: CREATE TABLE t (x DOUBLE, b BOOLEAN);
-- file p.sql: SELECT x, b FROM t TO TRAIN DNNClassifier WITH train.epochs = 2, train.batch_size = 10, optimizer.schedule = constant, model.hidden_units = [4], train.early_stopping = 0 COLUMN «x» LABEL b INTO m;
$ sqlflow compile -o out --schema my.sql p.sql

-- site: sqlflow_edl.analysis.without_rows _suggest_function
-- hint: write COLUMN CATEGORY_HASH({}, 1000)
-- take: write COLUMN (CATEGORY_HASH\(k, 1000\))
-- file my.sql: CREATE TABLE t (k VARCHAR, b BOOLEAN);
-- file p.sql: SELECT k, b FROM t TO TRAIN DNNClassifier WITH train.epochs = 2, train.batch_size = 10, optimizer.schedule = constant, model.hidden_units = [4], train.early_stopping = 0 COLUMN «k» LABEL b INTO m;
$ sqlflow compile -o out --schema my.sql p.sql

-- site: sqlflow_edl.analysis.without_rows _suggest_function
-- hint: write numbers in the place of statistics
-- take: write numbers in the place
-- as: x + 2
-- file my.sql: CREATE TABLE t (x DOUBLE, b BOOLEAN);
-- file p.sql: SELECT x, b FROM t TO TRAIN DNNClassifier WITH train.epochs = 2, train.batch_size = 10, optimizer.schedule = constant, model.hidden_units = [4], train.early_stopping = 0 COLUMN BUCKET(«x - MEAN(x)», [1, 2]) LABEL b INTO m;
$ sqlflow compile -o out --schema my.sql p.sql

-- site: edl.data.files.csv_dialect _find_separator
-- hint: write {}
-- take: write (optimizer.decay_steps), or (optimizer.schedule = constant)
-- as: , \2
-- file my.sql: CREATE TABLE t (x DOUBLE, b BOOLEAN);
-- file p.sql: SELECT x, b FROM t TO TRAIN DNNClassifier WITH train.epochs = 2, train.batch_size = 10«», model.hidden_units = [4], train.early_stopping = 0 COLUMN BUCKET(x, [1, 2]) LABEL b INTO m;
$ sqlflow compile -o out --schema my.sql p.sql

-- site: sqlflow_edl.analysis.without_rows _suggest_function
-- hint: write COLUMN BUCKET({}, [1, 10, 100]){}
-- take: in the schema file: (INSERT INTO t VALUES) …
-- as: \1 (1.0, true), (2.0, false), (3.0, true), (4.0, false);
-- file my.sql: CREATE TABLE t (x DOUBLE, b BOOLEAN);«»
-- file p.sql: SELECT x, b FROM t TO TRAIN DNNClassifier COLUMN x LABEL b INTO m;
$ sqlflow compile -o out --schema my.sql p.sql

-- site: sqlflow_edl.analysis.without_rows _of_labels
-- hint: name a Classifier, with model.n_classes
-- take: name a (Classifier), with (model.n_classes)
-- as: DNN\1
-- as: , \2 = 3
-- file my.sql: CREATE TABLE t (x DOUBLE, c INT);
-- file p.sql: SELECT x, c FROM t TO TRAIN «DNN» WITH train.epochs = 2, train.batch_size = 10, optimizer.schedule = constant, model.hidden_units = [4], train.early_stopping = 0« » COLUMN BUCKET(x, [1, 2]) LABEL c INTO m;
$ sqlflow compile -o out --schema my.sql p.sql

-- site: sqlflow_edl.analysis.without_rows _of_labels
-- hint: write model.n_classes = 3 for the classes 0, 1 and 2
-- take: write (model.n_classes = 3) for
-- as: , \1
-- file my.sql: CREATE TABLE t (x DOUBLE, c INT);
-- file p.sql: SELECT x, c FROM t TO TRAIN DNNClassifier WITH train.epochs = 2, train.batch_size = 10, optimizer.schedule = constant, model.hidden_units = [4], train.early_stopping = 0« » COLUMN BUCKET(x, [1, 2]) LABEL c INTO m;
$ sqlflow compile -o out --schema my.sql p.sql

-- site: sqlflow_edl.session.texts.expansion _check_letters
-- hint: MM is the month: ${{}}
-- take: MM is the month: (.+)
$ sqlflow run --source duckdb: --var 'd=«${yyyy-mm-dd}»' -e "SELECT '{{ d }}' AS x"

-- site: sqlflow_edl.session.texts.expansion _check_letters
-- hint: mm is minutes: ${{}}
-- take: mm is minutes: (.+)
$ sqlflow run --source duckdb: --var 'd=«${HH:MM}»' -e "SELECT '{{ d }}' AS x"

-- site: sqlflow_edl.session.texts.expansion _variable
-- hint: such as ${yyyy-MM-dd -1d} or ${HOME}
-- take: such as (\$\{yyyy-MM-dd -1d\}) or
$ sqlflow run --source duckdb: --var 'd=«${yyyy-MM-dd minus one}»' -e "SELECT '{{ d }}' AS x"

-- site: edl.sources.duckdb.engine open_database
-- hint: write bytes or a share of the memory: SQLFLOW_MEMORY_LIMIT=6GB or SQLFLOW_MEMORY_LIMIT=25%
-- take: write \S+ bytes|(SQLFLOW_MEMORY_LIMIT=6GB)
$ «SQLFLOW_MEMORY_LIMIT=many» sqlflow run --source duckdb:a.duckdb --create -e "SELECT 1 AS x"

-- site: edl.data.url _hint_for_missing
-- hint: check the path; --create, or create=True in Python, makes a new database
-- take: (--create), or
$ sqlflow run --source duckdb:a.duckdb «» -e "SELECT 1 AS x"

-- site: sqlflow_edl.cli.models.listening token_for
-- hint: set {}, or name a file with --token-file; --host 127.0.0.1 needs none
-- take: (--host 127.0.0.1) needs none
-- then: no model to serve|not installed
$ sqlflow serve «--host 0.0.0.0» --source duckdb:

-- site: sqlflow_edl.syntax.lookalikes 
-- hint: sqlflow jobs lists the jobs
-- take: (sqlflow jobs) lists the jobs
-- as: \1
$ «sqlflow run --source duckdb: -e "SHOW JOBS"»

-- site: sqlflow_edl.extensions.model_sql.query _outputs
-- hint: DNN, Linear and DNNLinearCombined models and boosted trees have one
-- take: DNN, Linear and DNNLinearCombined models
-- as: BoostedTreesRegressor WITH train.num_boost_round = 2
$ sqlflow run --source duckdb:a.duckdb --create -e "CREATE TABLE t AS SELECT i AS x, i + random() AS y, 'a' || i % 3 AS k FROM range(100) AS r(i)" -e "SELECT x, y, k FROM t TO TRAIN «DeepFMRegressor WITH epochs = 1» LABEL y INTO m"
$ sqlflow export --source duckdb:a.duckdb --sql --from t m

-- site: sqlflow_edl.extensions.model_sql.query _name
-- hint: write a name, schema.name, or a SELECT in quotation marks of the shell
-- take: write a name, schema.name
-- as: t
$ sqlflow run --source duckdb:a.duckdb --create -e "CREATE TABLE t AS SELECT i AS x, i + random() AS y FROM range(100) AS r(i)" -e "SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO m"
$ sqlflow export --source duckdb:a.duckdb --sql --from «"t WHERE 1"» m

-- site: sqlflow_edl.extensions.model_sql.networks network_outputs
-- hint: train a smaller one, WITH model.members = 1, model.hidden_units = [16]; or export it as ONNX (-o m.onnx)
-- take: (WITH model.members = 1, model.hidden_units = \[16\]);
-- as: \1, epochs = 1
$ sqlflow run --source duckdb:a.duckdb --create -e "CREATE TABLE t AS SELECT i AS x, i + random() AS y, 'a' || i % 3 AS k FROM range(100) AS r(i)" -e "SELECT x, y, k FROM t TO TRAIN DNNRegressor «WITH model.framework = torch, epochs = 1, model.hidden_units = [4000, 4000]» LABEL y INTO m"
$ sqlflow export --source duckdb:a.duckdb --sql --from t m

-- site: sqlflow_edl.analysis.without_rows _of_plan
-- hint: write {} = time or random
-- take: write (validation.split) = time or (random)
-- as: , \1 = \2
-- then: which feature d
-- file my.sql: CREATE TABLE t (x DOUBLE, d DATE, b BOOLEAN);
-- file p.sql: SELECT x, d, b FROM t TO TRAIN DNNClassifier WITH train.epochs = 2, train.batch_size = 10, optimizer.schedule = constant, model.hidden_units = [4], train.early_stopping = 0« » COLUMN BUCKET(x, [1, 2]) LABEL b INTO m;
$ sqlflow compile -o out --schema my.sql p.sql

-- site: sqlflow_edl.session.compiler Compiler.with_workers
-- hint: leave out --workers, --detach, --deadline and the cluster
-- take: leave out --workers
$ sqlflow run --source duckdb:a.duckdb --create -e "CREATE TABLE d AS SELECT DATE '2024-01-01' + i::INT AS day, i % 7 + random() AS y FROM range(60) AS r(i)" -e "SELECT day, y FROM d TO TRAIN Forecast WITH forecast.time = day, forecast.horizon = 3 LABEL y INTO m" «--workers 2»

-- site: sqlflow_edl.extensions.model_sql.columns 
-- hint: train with PLE in place of PERIODIC
-- take: train with (PLE) in place
$ sqlflow run --source duckdb:a.duckdb --create -e "CREATE TABLE t AS SELECT i AS x, i + random() AS y, 'a' || i % 3 AS k FROM range(100) AS r(i)" -e "SELECT x, y, k FROM t TO TRAIN DNNRegressor WITH epochs = 1, model.framework = torch, model.hidden_units = [4] COLUMN «PERIODIC»(x) LABEL y INTO m"
$ sqlflow export --source duckdb:a.duckdb --sql --from t m

-- site: sqlflow_edl.extensions.model_sql.columns 
-- hint: train with VOCABULARIZE in place of HASH
-- take: train with (VOCABULARIZE) in place
-- as: \1(k)
$ sqlflow run --source sqlite:a.sqlite --create -e "CREATE TABLE t (x REAL, y REAL, k TEXT)" -e "INSERT INTO t VALUES (1, 2, 'a'), (2, 3, 'b'), (3, 4, 'a'), (4, 5, 'b'), (5, 6, 'a'), (6, 7, 'b'), (7, 8, 'a'), (8, 9, 'b'), (9, 10, 'a'), (10, 11, 'b'), (11, 12, 'a'), (12, 13, 'b')" -e "SELECT x, y, k FROM t TO TRAIN LinearRegressor WITH epochs = 1, model.framework = torch COLUMN x, «CATEGORY_HASH(k, 10)» LABEL y INTO m"
$ sqlflow export --source sqlite:a.sqlite --sql --from t m

-- site: sqlflow_edl.extensions.model_sql.columns 
-- hint: train without CROSS, or join the columns to one text in the query: a || '/' || b
-- take: train without (CROSS), or
-- as: a, b
$ sqlflow run --source sqlite:a.sqlite --create -e "CREATE TABLE t (a TEXT, y REAL, b TEXT)" -e "INSERT INTO t VALUES ('u', 2, 'a'), ('v', 3, 'b'), ('u', 4, 'a'), ('v', 5, 'b'), ('v', 6, 'a'), ('u', 7, 'b'), ('u', 8, 'a'), ('v', 9, 'b'), ('u', 10, 'a'), ('v', 11, 'b'), ('u', 12, 'a'), ('v', 13, 'b')" -e "SELECT a, b, y FROM t TO TRAIN LinearRegressor WITH epochs = 1, model.framework = torch COLUMN «CROSS([a, b], 10)» LABEL y INTO m"
$ sqlflow export --source sqlite:a.sqlite --sql --from t m

-- site: sqlflow_edl.extensions.model_sql.query _outputs
-- hint: SHOW TRIALS lists a statement for each of its models
-- take: (SHOW TRIALS) lists
-- as: sqlflow run --source duckdb:a.duckdb -e "\1 m"
$ sqlflow run --source duckdb:a.duckdb --create -e "CREATE TABLE t AS SELECT i AS x, i + random() AS y FROM range(200) AS r(i)" -e "SELECT x, y FROM t LABEL y WITH auto.models = lightgbm, auto.trials = 2, auto.max_members = 2 INTO m"
$ «sqlflow export --source duckdb:a.duckdb --sql --from t m»

-- site: sqlflow_edl.extensions.serving.catalog ModelCatalog.start
-- hint: train one: SELECT … TO TRAIN … INTO my_model
-- take: SELECT … (TO TRAIN) … (INTO my_model)
-- as: sqlflow run --source duckdb:a.duckdb -e "SELECT x, y FROM t \1 BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y \2"
-- then: cannot listen
$ sqlflow run --source duckdb:a.duckdb --create -e "CREATE TABLE t AS SELECT i AS x, i + random() AS y FROM range(200) AS r(i)"
$ «sqlflow serve --source duckdb:a.duckdb»

-- site: sqlflow_edl.analysis.without_rows _of_plan
-- hint: write the weight of each class
-- take: write the weight of each class
-- as: {'false': 1, 'true': 2}
-- file my.sql: CREATE TABLE t (x DOUBLE, b BOOLEAN);
-- file p.sql: SELECT x, b FROM t TO TRAIN DNNClassifier WITH train.epochs = 2, train.batch_size = 10, optimizer.schedule = constant, model.hidden_units = [4], train.early_stopping = 0, train.class_weights = «balanced» COLUMN BUCKET(x, [1, 2]) LABEL b INTO m;
$ sqlflow compile -o out --schema my.sql p.sql

-- site: sqlflow_edl.analysis.warm_start choice
-- hint: train one of its models further: SHOW TRIALS {} lists their statements
-- take: (SHOW TRIALS \S+) lists
-- first: SELECT x, y FROM t LABEL y WITH auto.models = lightgbm, auto.trials = 2, auto.max_members = 2 INTO several;
«SELECT x, y FROM t TO TRAIN BoostedTreesRegressor LABEL y USING several INTO m»;

-- site: sqlflow_edl.session.program_check ProgramCheck._find_model
-- hint: use it before DROP MODEL
-- take: use it before DROP MODEL
$ sqlflow run --source duckdb:a.duckdb --create -e "CREATE TABLE t AS SELECT i AS x, i + random() AS y FROM range(200) AS r(i)" -e "SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO m"
$ sqlflow run --source duckdb:a.duckdb -e "«DROP MODEL m;» SELECT x FROM t TO PREDICT USING m"

-- site: sqlflow_edl.console.favourites save
-- hint: type it each time: no statement with a word such as password or token is kept
-- take: type it each time
-- as: SELECT 'x' AS password;
> «/fs q SELECT 'x' AS password»

-- site: sqlflow_edl.analysis.without_rows _of_plan
-- hint: leave it out
-- take: leave it out
-- then: which feature w
-- file my.sql: CREATE TABLE t (x DOUBLE, w DOUBLE, b BOOLEAN);
-- file p.sql: SELECT x, w, b FROM t TO TRAIN DNNClassifier WITH train.epochs = 2, train.batch_size = 10, optimizer.schedule = constant, model.hidden_units = [4], train.early_stopping = 0«, train.weight_column = w» COLUMN BUCKET(x, [1, 2]) LABEL b INTO m;
$ sqlflow compile -o out --schema my.sql p.sql

-- site: edl.cli.script _script
-- hint: edl run script.py, or edl run --resume JOB
-- take: (--resume) JOB
-- as: \1 my_job
-- then: my_job
$ edl run «»

-- site: edl.cli.script _resume
-- hint: leave out {}
-- take: leave out script.py
-- then: my_job
$ edl run --resume my_job «script.py»

-- site: edl.data.url _remote
-- hint: write it as {}://bucket/folder/*.parquet
-- take: write it as (.+)
-- then: my_zoo|bucket|fsspec
$ sqlflow run -e "SELECT 1" --source «s3://»

-- site: sqlflow_edl.console.favourites fill_parameters
-- hint: write it in the statement
-- take: write it in the statement
-- as: SELECT 'a\\b' AS x;
> /fs q SELECT $1 AS x
> «/f q "a\\b"»

-- site: sqlflow_edl.console.commands _job
-- hint: /job ID, /job ID log [INSTANCE], /job ID pause, /job ID resume or /job ID cancel
-- take: /job ID, (/job) ID (log)
-- as: \1 zz \2
-- then: job
> «/job zz explode»

-- site: sqlflow_edl.analysis.without_rows fit
-- hint: name one without folds: TO TRAIN DNNClassifier
-- take: (TO TRAIN DNNClassifier)
-- as: \1 WITH train.epochs = 2, train.batch_size = 10, optimizer.schedule = constant, model.hidden_units = [4], train.early_stopping = 0 COLUMN BUCKET(x, [1, 2])
-- file my.sql: CREATE TABLE t (x DOUBLE, b BOOLEAN);
-- file p.sql: SELECT x, b FROM t «» LABEL b INTO m;
$ sqlflow compile -o out --schema my.sql p.sql

-- site: sqlflow_edl.analysis.columns.computed _argument
-- hint: write a parameter with its name, such as share=0.05
-- take: such as (share=0.05)
-- file cf.py: class Clip:\n    def __init__(self, share=0.1):\n        self.share = share\n    def fit(self, rows):\n        return 0\n    def transform(self, rows, state):\n        return rows.column(0)\n
$ sqlflow run --source duckdb:///d.duckdb --create -e "CREATE TABLE t AS SELECT i::DOUBLE AS x, 2.0 * i AS y FROM range(100) r(i)"
$ SQLFLOW_MODEL_PATH=. sqlflow run --source duckdb:///d.duckdb --dry-run -e "SELECT x, y FROM t TO TRAIN BoostedTreesRegressor COLUMN cf.Clip(x, «0.05») LABEL y INTO m"

-- site: sqlflow_edl.analysis.user_model check
-- hint: write WITH model.{} = …; it is {}({})
-- take: write (WITH model.size) = …
-- as: \1 = 3
-- file nets.py: import torch\nclass Net(torch.nn.Module):\n    def __init__(self, size):\n        super().__init__()\n        self.layer = torch.nn.Linear(1, 1)\n    def forward(self, x):\n        return self.layer(x)\ndef loss(outputs, labels):\n    return ((outputs - labels) ** 2).mean()\ndef optimizer():\n    return None\n
$ sqlflow run --source duckdb:///d.duckdb --create -e "CREATE TABLE t AS SELECT i::DOUBLE AS x, 2.0 * i AS y FROM range(100) r(i)"
$ SQLFLOW_MODEL_PATH=. sqlflow run --source duckdb:///d.duckdb --dry-run -e "SELECT x, y FROM t TO TRAIN nets.Net «» LABEL y INTO m"

-- site: sqlflow_edl.analysis.without_rows _of_defaults
-- hint: write {}
-- take: write (.+?)
-- as: , optimizer.schedule = constant
-- file my.sql: CREATE TABLE t (x DOUBLE, b BOOLEAN);
-- file p.sql: SELECT x, b FROM t TO TRAIN DNNClassifier WITH train.epochs = 2, train.batch_size = 10«», model.hidden_units = [4], train.early_stopping = 0 COLUMN BUCKET(x, [1, 2]) LABEL b INTO m;
$ sqlflow compile -o out --schema my.sql p.sql

-- site: sqlflow_edl.analysis.columns.computed own_function
-- hint: write {}=…; it is {}({})
-- take: write (\w+=)…
-- as: , \g<1>0.05
-- file column_clips.py: class Clip:\n    def __init__(self, share):\n        self.share = share\n    def fit(self, rows):\n        return 0\n    def transform(self, rows, state):\n        return rows.column(0)\n
$ sqlflow run --source duckdb:///d.duckdb --create -e "CREATE TABLE t AS SELECT i::DOUBLE AS x, 2.0 * i AS y FROM range(100) r(i)"
$ SQLFLOW_MODEL_PATH=. sqlflow run --source duckdb:///d.duckdb --dry-run -e "SELECT x, y FROM t TO TRAIN BoostedTreesRegressor COLUMN column_clips.Clip(x«») LABEL y INTO m"

-- site: sqlflow_edl.analysis.without_rows 
-- hint: give rows of the table in the schema file: INSERT INTO t VALUES …
-- take: (INSERT INTO t VALUES) …
-- as: \1 (1, 2), (2, 4), (3, 6), (4, 8), (5, 10), (6, 12), (7, 14), (8, 16), (9, 18), (10, 20), (11, 22), (12, 24);
-- file my.sql: CREATE TABLE t (x DOUBLE, y DOUBLE); «»
-- file p.sql: SELECT x, y FROM t TO TRAIN DNNRegressor WITH train.epochs = 2, train.batch_size = 2, optimizer.schedule = constant, model.hidden_units = [4], train.early_stopping = 0 COLUMN BUCKET(x, [1, 2]) LABEL y INTO m;
$ sqlflow compile -o out --schema my.sql p.sql

-- site: sqlflow_edl.session.texts.sql_files read
-- hint: sqlflow run --source {} -e 'SELECT * FROM rows LIMIT 5'
-- take: (sqlflow run --source .+ -e 'SELECT \* FROM rows LIMIT 5')
-- file people.csv: a,b\n1,2\n
$ «sqlflow run people.csv»

-- site: sqlflow_edl.extensions.serving.server listen
-- hint: choose another with --host
-- take: another with (--host)
-- as: \1 127.0.0.1
-- then: no model
$ sqlflow run --source duckdb:a.duckdb --create -e "CREATE TABLE t AS SELECT 1 AS x"
$ SQLFLOW_SERVE_TOKEN=secret sqlflow serve --source duckdb:a.duckdb --port 0 «--host 192.0.2.7»

-- site: sqlflow_edl.extensions.serving.server listen
-- hint: choose another with --port
-- take: another with (--port)
-- as: "\1", "0"
-- then: no model
% import socket
% from sqlflow_edl.cli.main import main
% taken = socket.create_server(("127.0.0.1", 0))
% port = taken.getsockname()[1]
% %sqlflow_connect sqlite:a.sqlite --create
% assert main(["serve", "--source", "sqlite:a.sqlite", «"--port", str(port)»]) == 0

-- site: edl.data.recordio _damaged_record_error
-- hint: write the file again; an interrupted copy ends in the middle of a chunk
-- take: write the file again
-- then: has no column x
-- file rows.recordio: \x04\x03\x02\x01\x6a\x70\xcb\x78\x00\x00\x00\x00\x07\x00\x00\x00\x01\x00\x00\x00\x03\x00\x00\x00\x31\x2c\x32«\x04\x03»
-- file zoo/__init__.py: \n
-- file zoo/net.py: import torch\nfrom edl import features as fc\nLABEL = fc.label("y")\nFEATURES = fc.Features(fc.standardize("x", mean=0.0, std=1.0))\ndef custom_model():\n    return torch.nn.Linear(1, 1)\ndef loss(labels, outputs):\n    return (outputs - labels) ** 2\ndef optimizer(parameters):\n    return torch.optim.SGD(parameters, 0.01)\ndef feed(batch, mode):\n    return FEATURES.transform(batch)["dense"], None if mode == "predict" else LABEL.transform(batch, mode)\ndef eval_metrics_fn():\n    return {}\n
$ edl train --model_def zoo.net.custom_model --training_data recordio:rows.recordio --output m.zip

-- site: sqlflow_edl.session.predictions Predictions.stage
-- hint: write them into a table first: SELECT … TO PREDICT my_table USING my_model
-- take: SELECT … (TO PREDICT) my_table (USING) my_model
-- as: SELECT x FROM t \1 results_first \2 m_plain; SELECT * FROM results_first
-- on: postgres
$ sqlflow run --source {URL} -e "SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO m_plain"
$ sqlflow run --source {URL} -e "DO 'BEGIN CREATE ROLE plain; EXCEPTION WHEN duplicate_object THEN NULL; END'"
$ sqlflow run --source {URL} -e "DO 'BEGIN EXECUTE format(''REVOKE TEMP ON DATABASE %I FROM PUBLIC'', current_database()); END'"
$ sqlflow run --source {URL} -e "GRANT ALL ON ALL TABLES IN SCHEMA public TO plain" -e "GRANT ALL ON SCHEMA public TO plain"
$ PGOPTIONS='-c role=plain' sqlflow run --source {URL} -e "«SELECT * FROM PREDICT(m_plain, (SELECT x FROM t))»"

-- site: edl.run.search.judge Judge.__init__
-- hint: compile the program again: sqlflow compile
-- take: again: (sqlflow compile)
-- as: \1 --source duckdb:///d.duckdb -o again p.sql
-- file p.sql: SELECT x, y FROM t LABEL y INTO m;
$ sqlflow run --source duckdb:///d.duckdb --create -e "CREATE TABLE t AS SELECT i::DOUBLE AS x, 2.0 * i AS y, 'k' || i % 3 AS k, DATE '2024-01-01' + i::INT AS day FROM range(100) r(i)" 
$ sqlflow compile --source duckdb:///d.duckdb -o out p.sql
$ sqlflow run --source duckdb:///d.duckdb --create -e "CREATE OR REPLACE TABLE t AS SELECT i::DOUBLE AS x, 2.0 * i AS y FROM range(40) r(i)" 
$ «edl train --program out/m»

-- site: sqlflow_edl.cli.models.retrain _statement
-- hint: sqlflow run -e 'SHOW TRAIN {}' shows it
-- take: (sqlflow run) (-e 'SHOW TRAIN .+?') shows it
-- as: \1 --source duckdb:///d.duckdb \2
-- file rows.csv: x,y\n{1,2\n3,4\n}*20
-- file zoo/__init__.py: \n
-- file zoo/net.py: import torch\nfrom edl import features as fc\nLABEL = fc.label("y")\nFEATURES = fc.Features(fc.standardize("x", mean=0.0, std=1.0))\ndef custom_model():\n    return torch.nn.Linear(1, 1)\ndef loss(labels, outputs):\n    return (outputs - labels) ** 2\ndef optimizer(parameters):\n    return torch.optim.SGD(parameters, 0.01)\ndef feed(batch, mode):\n    return FEATURES.transform(batch)["dense"], None if mode == "predict" else LABEL.transform(batch, mode)\ndef eval_metrics_fn():\n    return {}\n
$ edl train --model_def zoo.net.custom_model --training_data rows.csv --output m.zip
$ sqlflow copy m.zip --to duckdb:///d.duckdb --create
$ «sqlflow retrain m --source duckdb:///d.duckdb»

-- site: edl.data.url parse_files
-- hint: write it as {}:///path/to/file
-- take: write it as (csv)://(/)path/to/file
-- as: \1:rows.csv
-- file rows.csv: x,y\n{1,2\n3,4\n}*20
-- file zoo/__init__.py: \n
-- file zoo/net.py: import torch\nfrom edl import features as fc\nLABEL = fc.label("y")\nFEATURES = fc.Features(fc.standardize("x", mean=0.0, std=1.0))\ndef custom_model():\n    return torch.nn.Linear(1, 1)\ndef loss(labels, outputs):\n    return (outputs - labels) ** 2\ndef optimizer(parameters):\n    return torch.optim.SGD(parameters, 0.01)\ndef feed(batch, mode):\n    return FEATURES.transform(batch)["dense"], None if mode == "predict" else LABEL.transform(batch, mode)\ndef eval_metrics_fn():\n    return {}\n
$ edl train --model_def zoo.net.custom_model --training_data «csv:» --output m.zip

-- site: edl.data.files.csv_ranges CSVTexts._damage_error
-- hint: name its encoding: ?encoding={}
-- take: (encoding=cp1252)
-- file rows.csv: x,y,a\n{1,2,a line of the file that is long enough for the part of it that is not looked at before it is read to its end\n}*60000{3,4,\xe9\n}*1
-- file zoo/__init__.py: \n
-- file zoo/net.py: import torch\nfrom edl import features as fc\nLABEL = fc.label("y")\nFEATURES = fc.Features(fc.standardize("x", mean=0.0, std=1.0))\ndef custom_model():\n    return torch.nn.Linear(1, 1)\ndef loss(labels, outputs):\n    return (outputs - labels) ** 2\ndef optimizer(parameters):\n    return torch.optim.SGD(parameters, 0.01)\ndef feed(batch, mode):\n    return FEATURES.transform(batch)["dense"], None if mode == "predict" else LABEL.transform(batch, mode)\ndef eval_metrics_fn():\n    return {}\n
$ edl train --model_def zoo.net.custom_model --training_data csv:rows.csv?«encoding=utf-8» --output m.zip --minibatch_size 8192 --num_epochs 1

-- site: sqlflow_edl.codegen.checks check_names
-- hint: use it with edl predict --model_def and --weights
-- take: use it with (edl predict --model_def) and (--weights)
-- as: \1 zoo.net.custom_model \2 m.zip --prediction_data rows.csv
-- file rows.csv: x,y\n{1,2\n3,4\n}*20
-- file zoo/__init__.py: \n
-- file zoo/net.py: import torch\nfrom edl import features as fc\nLABEL = fc.label("y")\nFEATURES = fc.Features(fc.standardize("x", mean=0.0, std=1.0))\ndef custom_model():\n    return torch.nn.Linear(1, 1)\ndef loss(labels, outputs):\n    return (outputs - labels) ** 2\ndef optimizer(parameters):\n    return torch.optim.SGD(parameters, 0.01)\ndef feed(batch, mode):\n    return FEATURES.transform(batch)["dense"], None if mode == "predict" else LABEL.transform(batch, mode)\ndef eval_metrics_fn():\n    return {}\n
$ edl train --model_def zoo.net.custom_model --training_data rows.csv --output m.zip
$ sqlflow copy m.zip --to duckdb:///d.duckdb --create
$ sqlflow run --source duckdb:///d.duckdb -e "CREATE TABLE t AS SELECT i::DOUBLE AS x, 2.0 * i AS y, 'k' || i % 3 AS k, DATE '2024-01-01' + i::INT AS day FROM range(100) r(i)"
$ «sqlflow run --source duckdb:///d.duckdb -e "SELECT x FROM t TO PREDICT p USING m"»

-- site: sqlflow_edl.analysis.warm_start choice
-- hint: write TO TRAIN {}
-- take: write (TO TRAIN nets.Net)
-- file nets.py: import torch\nfrom edl import metrics\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.layer = torch.nn.Linear(1, 1)\n    def forward(self, x):\n        return self.layer(x)\ndef loss(outputs, labels):\n    return ((outputs - labels) ** 2).mean()\ndef optimizer(parameters):\n    return torch.optim.SGD(parameters, 0.01)\n
$ sqlflow run --source duckdb:///d.duckdb --create -e "CREATE TABLE t AS SELECT i::DOUBLE AS x, 2.0 * i AS y, 'k' || i % 3 AS k, DATE '2024-01-01' + i::INT AS day FROM range(100) r(i)"
$ SQLFLOW_MODEL_PATH=. sqlflow run --source duckdb:///d.duckdb -e "SELECT x, y FROM t TO TRAIN nets.Net WITH train.epochs = 1 LABEL y INTO m"
$ SQLFLOW_MODEL_PATH=. sqlflow run --source duckdb:///d.duckdb --dry-run -e "SELECT x, y FROM t «» LABEL y USING m INTO n"

-- site: sqlflow_edl.session.activation Activation._metric
-- hint: write {} = "rmse"
-- take: write (.+ = "rmse")
-- as: , \1
-- file nets.py: import torch\nfrom edl import metrics\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.layer = torch.nn.Linear(1, 1)\n    def forward(self, x):\n        return self.layer(x)\ndef loss(outputs, labels):\n    return ((outputs - labels) ** 2).mean()\ndef optimizer(parameters):\n    return torch.optim.SGD(parameters, 0.01)\ndef eval_metrics_fn():\n    return {"mine": metrics.MAE()}\n
$ sqlflow run --source duckdb:///d.duckdb --create -e "CREATE TABLE t AS SELECT i::DOUBLE AS x, 2.0 * i AS y, 'k' || i % 3 AS k, DATE '2024-01-01' + i::INT AS day FROM range(100) r(i)"
$ SQLFLOW_MODEL_PATH=. sqlflow run --source duckdb:///d.duckdb -e 'SELECT x, y FROM t TO TRAIN nets.Net WITH train.epochs = 1 LABEL y INTO m'
$ SQLFLOW_MODEL_PATH=. sqlflow run --source duckdb:///d.duckdb -e 'SELECT x, y FROM t TO TRAIN nets.Net WITH train.epochs = 1, train.activate = better«» LABEL y INTO m'

-- site: sqlflow_edl.analysis.uncertainty
-- hint: leave it out
-- take: leave it out
-- then: model_def
-- file rows.csv: x,y\n{1,2\n3,4\n}*20
-- file zoo/__init__.py: \n
-- file zoo/net.py: import torch\nfrom edl import features as fc\nTARGET = fc.label("y")\nFEATURES = fc.Features(fc.standardize("x", mean=0.0, std=1.0))\ndef custom_model():\n    return torch.nn.Linear(1, 1)\ndef loss(labels, outputs):\n    return (outputs - labels) ** 2\ndef optimizer(parameters):\n    return torch.optim.SGD(parameters, 0.01)\ndef feed(batch, mode):\n    return FEATURES.transform(batch)["dense"], None if mode == "predict" else TARGET.transform(batch, mode)\ndef eval_metrics_fn():\n    return {}\n
$ edl train --model_def zoo.net.custom_model --training_data rows.csv --output m.zip
$ sqlflow copy m.zip --to duckdb:///d.duckdb --create
$ sqlflow run --source duckdb:///d.duckdb -e "CREATE TABLE t AS SELECT i::DOUBLE AS x, 2.0 * i AS y, 'k' || i % 3 AS k, DATE '2024-01-01' + i::INT AS day FROM range(100) r(i)"
$ sqlflow run --source duckdb:///d.duckdb -e "SELECT x FROM t TO PREDICT p USING m« WITH predict.interval = 0.9»"

-- site: sqlflow_edl.analysis.without_rows _of_plan
-- hint: leave USING out
-- take: leave USING out
-- file my.sql: CREATE TABLE t (x DOUBLE, y DOUBLE);
-- file p.sql: SELECT x, y FROM t TO TRAIN DNNRegressor WITH train.epochs = 2, train.batch_size = 2, optimizer.schedule = constant, model.hidden_units = [4], train.early_stopping = 0 COLUMN BUCKET(x, [1, 2]) LABEL y« USING m» INTO n;
-- then: whose values are learned|only rows tell the mean
$ sqlflow run --source duckdb:///d.duckdb --create --model-store models -e "CREATE TABLE t AS SELECT i::DOUBLE AS x, 2.0 * i AS y, 'k' || i % 3 AS k, DATE '2024-01-01' + i::INT AS day FROM range(100) r(i)" -e "SELECT x, y FROM t TO TRAIN DNNRegressor WITH train.epochs = 2, train.batch_size = 2, optimizer.schedule = constant, model.hidden_units = [4], train.early_stopping = 0 COLUMN BUCKET(x, [1, 2]) LABEL y INTO m"
$ sqlflow compile --model-store models -o out --schema my.sql p.sql

-- site: sqlflow_edl.extensions.model_sql.forests tree_outputs
-- hint: train fewer or smaller ones, WITH train.num_boost_round = 100, model.num_leaves = 31; or export them as ONNX (-o m.onnx)
-- take: smaller ones, WITH (train.num_boost_round = 100, model.num_leaves = 31); or
$ sqlflow run --source duckdb:///d.duckdb --create -e "CREATE TABLE t AS SELECT i::DOUBLE AS x, sin(i * 7) AS y FROM range(4000) r(i)" -e "SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH «train.num_boost_round = 300, model.num_leaves = 200», model.min_data_in_leaf = 1, train.early_stopping = 0 LABEL y VALIDATE 0 INTO m"
$ sqlflow export m --source duckdb:///d.duckdb --sql --from t -o m.sql

-- site: sqlflow_edl.extensions.model_sql.columns Columns._seconds
-- hint: train with its parts: YEAR, MONTH, DAY, WEEKDAY, HOUR or MINUTE
-- take: train with its parts: .* (HOUR) or
-- as: \1(c)
$ sqlflow run --source duckdb:///d.duckdb --create -e "CREATE TABLE t AS SELECT TIMESTAMP '2024-01-01' + INTERVAL (i) HOUR AS c, 2.0 * i AS y FROM range(100) r(i)" -e "SELECT c, y FROM t TO TRAIN LinearRegressor WITH train.epochs = 1 COLUMN «c» LABEL y INTO m"
$ sqlflow export m --source duckdb:///d.duckdb --dialect maxcompute --sql --from t -o m.sql

-- site: sqlflow_edl.analysis.warm_start choice
-- hint: run that program: edl train --weights
-- take: run that program: (edl) (train --weights)
-- as: \1("\2 m.zip --program out/m --output n.zip".split())
-- file p.sql: SELECT x, y FROM t TO TRAIN LinearRegressor WITH train.epochs = 1 LABEL y INTO m;
% from sqlflow_edl.cli.main import main as sqlflow
% from edl.cli.main import main as edl
% from pathlib import Path
% %sqlflow_connect duckdb:///d.duckdb --create
% r = %sqlflow CREATE TABLE t AS SELECT i::DOUBLE AS x, 2.0 * i AS y FROM range(100) r(i)
% sqlflow("compile --source duckdb:///d.duckdb -o out p.sql".split())
% program = Path("out/m/model.py")
% program.write_text(program.read_text() + "# edited\n")
% edl("train --program out/m --output m.zip".split())
% sqlflow("copy m.zip --to duckdb:///d.duckdb".split())
% «get_ipython().run_line_magic("sqlflow", "SELECT x, y FROM t TO TRAIN LinearRegressor WITH train.epochs = 1 LABEL y USING m INTO n")»

-- site: sqlflow_edl.analysis.inference.prediction prediction
-- hint: name the column that is predicted behind the table: TO PREDICT my_table.my_column
-- take: (\.my_column)
-- on: mysql
$ sqlflow run --source duckdb:///d.duckdb --create -e "CREATE TABLE t AS SELECT i::DOUBLE AS x, 2.0 * i AS y, 'k' || i % 3 AS k, DATE '2024-01-01' + i::INT AS day FROM range(100) r(i)" -e "SELECT x, y AS \"y😀\" FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL \"y😀\" INTO m"
$ sqlflow copy m --source duckdb:///d.duckdb --to {URL} --as m_odd
$ sqlflow run --source {URL} -e "SELECT x FROM t TO PREDICT results_odd«» USING m_odd"

-- site: sqlflow_edl.extensions.notebook.result_set draw_explained
-- hint: SELECT … TO EXPLAIN m WITH explain.level = rows, or the table of EXPLAIN … INTO
-- take: (TO EXPLAIN) m (WITH explain.level = rows), or
-- as: \1 m \2
% %sqlflow_connect duckdb:
% r = %sqlflow CREATE TABLE t AS SELECT i::DOUBLE AS x, 2.0 * i AS y FROM range(100) r(i)
% r = %sqlflow SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO m
% r = %sqlflow SELECT x FROM t «»
% r.importances()

-- site: sqlflow_edl.console.commands _edit
-- hint: set EDITOR to an installed editor
-- take: set (EDITOR) to an installed editor
-- as: true
> EDITOR=«no-editor-of-this-name»
> SELECT 1;
> /edit
> SELECT 2;

-- site: sqlflow_edl.extensions.model_sql.networks _Layers._activate
-- hint: train WITH model.activation = relu, or {}; or export it as ONNX
-- take: train WITH (model.activation = relu), or
$ sqlflow run --source duckdb:///d.duckdb --create -e "CREATE TABLE t AS SELECT i::DOUBLE AS x, 2.0 * i AS y, 'k' || i % 3 AS k, DATE '2024-01-01' + i::INT AS day FROM range(100) r(i)" -e "SELECT x, y FROM t TO TRAIN DNNRegressor WITH train.epochs = 1, model.members = 1, model.hidden_units = [4], «model.activation = gelu» LABEL y INTO m"
$ sqlflow export m --source duckdb:///d.duckdb --sql --from t -o m.sql

-- site: edl.features.encodings Encoder.table
-- hint: run the statement with sqlflow run; a program that is only compiled lacks them
-- take: run the statement with (sqlflow run)
-- as: \1 p.sql --source duckdb:///d.duckdb
-- file p.sql: SELECT k, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 COLUMN TARGET_ENCODE(k) LABEL y INTO m;
$ sqlflow run --source duckdb:///d.duckdb --create -e "CREATE TABLE t AS SELECT i::DOUBLE AS x, 2.0 * i AS y, 'k' || i % 3 AS k, DATE '2024-01-01' + i::INT AS day FROM range(100) r(i)" 
$ sqlflow compile --source duckdb:///d.duckdb -o out p.sql
$ «edl train --program out/m»

-- site: edl.run.job_runner starting_weights
-- hint: add --weights with the archive of that model
-- take: add (--weights) with
-- as: \1 m.zip
-- file p.sql: SELECT x, y FROM t TO TRAIN DNNRegressor WITH train.epochs = 1 LABEL y USING m INTO n;
$ sqlflow run --source duckdb:///d.duckdb --create -e "CREATE TABLE t AS SELECT i::DOUBLE AS x, 2.0 * i AS y, 'k' || i % 3 AS k, DATE '2024-01-01' + i::INT AS day FROM range(100) r(i)" -e "SELECT x, y FROM t TO TRAIN DNNRegressor WITH train.epochs = 1 LABEL y INTO m"
$ sqlflow copy m --source duckdb:///d.duckdb --to m.zip
$ sqlflow compile --source duckdb:///d.duckdb -o out p.sql
$ edl train --program out/n «»

-- site: edl.run.job_runner export
-- hint: SELECT … TO PREDICT reads them from a query
-- take: SELECT … (TO PREDICT) reads
-- as: sqlflow run --source duckdb:///d.duckdb -e "SELECT day, y FROM t \1 p USING m"
-- file p.sql: SELECT day, y FROM t TO TRAIN Forecast WITH forecast.time = day, forecast.horizon = 7 LABEL y INTO m;
$ sqlflow run --source duckdb:///d.duckdb --create -e "CREATE TABLE t AS SELECT i::DOUBLE AS x, 2.0 * i AS y, 'k' || i % 3 AS k, DATE '2024-01-01' + i::INT AS day FROM range(100) r(i)"
$ sqlflow run --source duckdb:///d.duckdb p.sql
$ sqlflow copy m --source duckdb:///d.duckdb --to m.zip
$ sqlflow compile --source duckdb:///d.duckdb -o out p.sql
$ «edl export --program out/m --weights m.zip --output m.txt»

-- site: sqlflow_edl.analysis.inference.prediction without_statistics
-- hint: models that TRAIN has made have them
-- take: models that (TRAIN) has
-- as: sqlflow run --source duckdb:///d.duckdb -e "SELECT x, y FROM t TO \1 LinearRegressor WITH train.epochs = 1 LABEL y INTO m"
-- file p.sql: SELECT x, y FROM t TO TRAIN LinearRegressor WITH train.epochs = 1 LABEL y INTO m;
$ sqlflow run --source duckdb:///d.duckdb --create -e "CREATE TABLE t AS SELECT i::DOUBLE AS x, 2.0 * i AS y, 'k' || i % 3 AS k, DATE '2024-01-01' + i::INT AS day FROM range(100) r(i)"
$ sqlflow compile --source duckdb:///d.duckdb -o out p.sql
$ edl train --program out/m --output m.zip
$ «sqlflow copy m.zip --to duckdb:///d.duckdb»
$ sqlflow run --source duckdb:///d.duckdb -e "SELECT x FROM t TO PREDICT p USING m WITH predict.report = drift"

-- site: edl.reachability limit
-- hint: leave it out for {}
-- take: leave it out
$ sqlflow run --source duckdb:///d.duckdb --create -e "CREATE TABLE t AS SELECT i::DOUBLE AS x, 2.0 * i AS y, 'k' || i % 3 AS k, DATE '2024-01-01' + i::INT AS day FROM range(100) r(i)"
$ «EDL_UNREACHABLE_SECS=zz» sqlflow run --source duckdb:///d.duckdb --workers 2 -e "SELECT x, y FROM t TO TRAIN LinearRegressor WITH train.epochs = 1 LABEL y INTO m"

-- site: sqlflow_edl.extensions.bigquery_ml.functions ModelFunction.training_query
-- hint: write ML.PREDICT(MODEL my_model, (SELECT …))
-- take: write (ML.PREDICT\(MODEL )my_model, \(SELECT …\)
-- as: \1m, (SELECT * FROM t))
$ sqlflow run --source duckdb:///d.duckdb --create -e "CREATE TABLE t AS SELECT i::DOUBLE AS x, 2.0 * i AS y, 'k' || i % 3 AS k, DATE '2024-01-01' + i::INT AS day FROM range(100) r(i)" -e "SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO m"
$ sqlflow copy m --source duckdb:///d.duckdb --to duckdb:///e.duckdb --create
$ sqlflow run --source duckdb:///e.duckdb -e "CREATE TABLE t AS SELECT i::DOUBLE AS x, 2.0 * i AS y, 'k' || i % 3 AS k, DATE '2024-01-01' + i::INT AS day FROM range(100) r(i)" -e "SELECT * FROM «ML.GLOBAL_EXPLAIN(MODEL m)»"

-- site: sqlflow_edl.analysis.inference.prediction prediction_in_memory
-- hint: write SELECT … TO PREDICT my_table USING {}
-- take: write SELECT … (TO PREDICT) my_table (USING m@1)
-- as: sqlflow run --source duckdb:///d.duckdb -e "SELECT day, y FROM t \1 p \2"
$ sqlflow run --source duckdb:///d.duckdb --create -e "CREATE TABLE t AS SELECT i::DOUBLE AS x, 2.0 * i AS y, 'k' || i % 3 AS k, DATE '2024-01-01' + i::INT AS day FROM range(100) r(i)" -e "SELECT day, y FROM t TO TRAIN Forecast WITH forecast.time = day, forecast.horizon = 7 LABEL y INTO m"
$ «sqlflow export m --source duckdb:///d.duckdb --sql --from t»

-- site: sqlflow_edl.cli.models.retrain _activate_if_better
-- hint: train it by SELECT … TO TRAIN … WITH {} = better
-- take: train it by SELECT … (TO TRAIN) … (WITH train.activate = better)
-- as: sqlflow run --source duckdb:///d.duckdb -e "SELECT x, y FROM t \1 BoostedTreesRegressor \2 LABEL y INTO m"
$ sqlflow run --source duckdb:///d.duckdb --create -e "CREATE TABLE t AS SELECT i::DOUBLE AS x, 2.0 * i AS y, 'k' || i % 3 AS k, DATE '2024-01-01' + i::INT AS day FROM range(100) r(i)" -e "CREATE MODEL m OPTIONS(model_type='boosted_tree_regressor', input_label_cols=['y']) AS SELECT x, y FROM t"
$ «sqlflow retrain m --if-better --source duckdb:///d.duckdb»

-- site: sqlflow_edl.cli.program.record find_remaining
-- hint: run the whole program: sqlflow run
-- take: run the whole program: (sqlflow run)
-- as: \1 my.sql --source duckdb:///d.duckdb
-- then: zz
-- file my.sql: SET threads = 2; SELECT 1 AS x; SELECT zz;\n
$ sqlflow run my.sql --source duckdb:///d.duckdb --create || true
$ «sqlflow retry»

-- site: sqlflow_edl.session.runner JobRunner._evaluate_segments
-- hint: leave --detach out
-- take: leave --detach out
-- file my.sql: CREATE TABLE t AS SELECT i * 1.0 AS x, 2.0 * i AS y, i % 2 AS k FROM range(40) AS r (i); SELECT x, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO m;\n
$ sqlflow run my.sql --source duckdb:///d.duckdb --create
$ sqlflow run --source duckdb:///d.duckdb «--detach» -e "SELECT * FROM t TO EVALUATE m WITH evaluate.by = k INTO e"

-- site: edl.models.registry.object_store open_objects
-- hint: leave it out; the store's library finds its credentials in the environment, see sqlflow help models
-- take: leave it out
$ sqlflow run --source duckdb: --model-store "file://«user:secret@»models" -e "SHOW MODELS"

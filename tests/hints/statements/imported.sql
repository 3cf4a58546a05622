-- site: sqlflow_edl.extensions.imported.statement make_statement
-- hint: leave it out
-- take: leave it out
-- then: there is no file
CREATE MODEL m OPTIONS(model_type = 'onnx', model_path = 'm.onnx') «AS SELECT 1»;

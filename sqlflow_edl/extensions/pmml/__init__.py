"""Trees of LightGBM and XGBoost over the raw columns of a table as PMML 4.4: `sqlflow export m -o m.pmml`."""

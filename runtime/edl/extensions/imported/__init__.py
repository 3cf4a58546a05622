"""Models that were trained elsewhere: what an ONNX, LightGBM or XGBoost file holds, and the adapter of ONNX files.

No code of a file is executed but by the libraries themselves. A file is first read in a process of its own
(`description`), because a library may crash at a damaged one. Files of LightGBM and XGBoost become models of
`edl.frameworks.trees`, as if they had been trained here.
"""

"""PREDICT, EVALUATE and EXPLAIN: forward passes, metrics, Shapley values and reports."""

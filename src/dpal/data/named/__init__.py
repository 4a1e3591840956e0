"""Published datasets: their official files, read as they are. `registry` has the names, `dataset` what a dataset is."""

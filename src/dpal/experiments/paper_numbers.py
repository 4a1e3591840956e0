"""The paper's own numbers, in percent: mean and deviation over its runs. None where the paper gives no number."""

PAPER: dict[str, tuple[float, float]] = {
    f"{task}.{row}": value
    for row, values in {
        "random": ((66.58, 0.94), (76.45, 0.62), (92.31, 0.94), (74.54, 3.37), (85.74, 0.71), (78.62, 0.16)),
        "random-naive-al": ((63.40, 0.67), (72.87, 0.54), (87.02, 1.94), (69.84, 2.47), (84.43, 0.64), (78.11, 0.20)),
        "random-al": ((66.55, 1.22), (73.23, 0.60), (88.52, 0.90), (73.50, 4.28), (85.59, 0.89), (78.66, 0.34)),
        "least-confidence-none": (
            (68.32, 0.66), (74.87, 0.49), (90.81, 1.36), (76.58, 3.65), (86.83, 0.33), (79.21, 0.15),
        ),
        "minimum-margin-none": ((68.19, 0.48), (74.60, 0.45), (91.82, 1.02), (80.73, 3.57), None, (79.40, 0.12)),
        "entropy-none": ((68.43, 0.59), (74.99, 0.47), (91.22, 1.21), (81.48, 2.79), (87.11, 0.23), (79.37, 0.19)),
        "bald-none": ((67.09, 0.94), (74.01, 0.61), (85.10, 0.91), (76.95, 2.98), (85.94, 0.55), (78.64, 0.19)),
        "least-confidence-laplace": (
            (66.91, 0.63), (73.41, 0.62), (88.85, 0.74), (75.92, 3.11), (86.49, 0.37), (78.83, 0.30),
        ),
        "minimum-margin-laplace": ((66.40, 0.50), (73.45, 0.62), (89.44, 0.63), (77.60, 3.34), None, (78.90, 0.27)),
        "entropy-laplace": ((67.30, 0.82), (73.64, 0.33), (89.07, 1.05), (78.00, 3.34), (86.71, 0.42), (78.86, 0.16)),
        "bald-laplace": ((66.12, 0.94), (72.98, 0.54), (87.99, 0.82), (76.37, 3.14), (86.08, 0.60), (78.22, 0.14)),
    }.items()
    for task, value in zip(
        (
            "cifar10-resnet9",
            "cifar10-eq-resnet9",
            "bloodcell-resnet9",
            "retinaloct-resnet9",
            "chexpert-nfnet",
            "snli-bert",
        ),
        values,
        strict=True,
    )
    if value is not None
} | {
    "cifar10-resnet9.random-epsilon-3": (57.73, 0.85),
    "cifar10-resnet9.random-epsilon-5": (62.66, 0.96),
    "cifar10-resnet9.random-epsilon-16": (70.39, 0.50),
    "cifar10-resnet9.entropy-laplace-epsilon-3": (57.42, 0.91),
    "cifar10-resnet9.entropy-laplace-epsilon-5": (63.15, 0.75),
    "cifar10-resnet9.entropy-laplace-epsilon-16": (71.93, 0.48),
    "cifar10-resnet9.entropy-laplace-continual": (63.94, 0.98),
    "cifar10-resnet9.entropy-laplace-noise-reduction": (66.83, 0.72),
    "cifar10-resnet9.random-paper-delta": (66.58, 0.94),
    "cifar10-resnet9.random-al-paper-delta": (66.55, 1.22),
    "cifar10-resnet9.entropy-laplace-paper-delta": (67.30, 0.82),
    "cifar10-resnet9.entropy-none-paper-delta": (68.43, 0.59),
}  # fmt: skip

# Selection accuracy of the four selections of entropy with Laplace, in percent.
SELECTION_ACCURACY: dict[str, tuple[float, ...]] = {"cifar10-resnet9.entropy-laplace": (29.17, 13.16, 5.40, 5.30)}

# Seconds of planning.
PLANNING_SECONDS: dict[str, float] = {
    f"{task}.planning-{phases}-phases": seconds
    for task, column in {
        "cifar10-resnet9": (37.8, 67.1, 110.9, 137.2, 163.3),
        "bloodcell-resnet9": (28.2, 54.0, 104.8, 127.5, 158.5),
        "snli-bert": (29.9, 56.7, 87.5, 126.3, 142.9),
    }.items()
    for phases, seconds in zip((2, 3, 4, 5, 6), column, strict=True)
}
